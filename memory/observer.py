"""Have a model observe messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from memory.ask import Question, Reply, ask_for, reply_of
from memory.engine.parsing import parse_observer
from memory.engine.values import ObserverOutput, ObserverRequest

__all__ = ["Observed", "Reply", "observe", "reply_of"]


@dataclass(frozen=True, slots=True)
class Observed:
    """Hold what an Observer wrote, and the answer it was read from."""

    output: ObserverOutput
    reply: Reply


async def observe(
    request: ObserverRequest,
    *,
    model: Model,
    tz: tzinfo,
    settings: ModelSettings | None = None,
    timeout: float = 120,
) -> Observed:
    """Return what the model observed in the request's messages; times it gives are in ``tz``.

    Raises BadOutput (EmptyOutput, UnparsableOutput, DegenerateOutput), which carries the reply
    as ``error.reply``; TimeoutError after ``timeout`` seconds; and what the model raises.
    """

    def read(text: str) -> ObserverOutput:
        return parse_observer(text, tz=tz, known=request.numbers)

    question = Question("observer", request.instructions, request.prompt, model, settings)
    return Observed(*await ask_for(read, question, timeout=timeout))
