"""Have a model condense what is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from memory.ask import Question, Reply, ask_for, reply_of
from memory.engine.parsing import parse_reflector
from memory.engine.values import ReflectorOutput, ReflectorRequest

__all__ = ["Reflected", "Reply", "reflect", "reply_of"]


@dataclass(frozen=True, slots=True)
class Reflected:
    """Hold what a Reflector wrote, and the answer it was read from."""

    output: ReflectorOutput
    reply: Reply


async def reflect(
    request: ReflectorRequest,
    *,
    model: Model,
    tz: tzinfo,
    settings: ModelSettings | None = None,
    timeout: float = 120,
) -> Reflected:
    """Return what the model made of the request's lines; times it gives are in ``tz``.

    Whether that is short enough, and asking again at a higher level, is the caller's matter.
    Raises BadOutput (EmptyOutput, UnparsableOutput, DegenerateOutput), which carries the reply
    as ``error.reply``; TimeoutError after ``timeout`` seconds; and what the model raises.
    """

    def read(text: str) -> ReflectorOutput:
        return parse_reflector(text, tz=tz, known=request.numbers)

    question = Question("reflector", request.instructions, request.prompt, model, settings)
    # What a cut reply lacks would be gone from memory.
    return Reflected(*await ask_for(read, question, timeout=timeout, whole=True))
