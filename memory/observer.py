"""Have a model observe messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType

from pydantic_ai.messages import UserContent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from memory.ask import Question, Reply, ask_for, reply_of
from memory.engine.parsing import parse_observer, parse_observer_of
from memory.engine.values import ObserverOutput, ObserverRequest

__all__ = ["Observed", "ObservedMany", "Reply", "observe", "observe_many", "reply_of"]

Media = Mapping[str, UserContent]
NO_MEDIA: Media = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Observed:
    """Hold what an Observer wrote, and the answer it was read from."""

    output: ObserverOutput
    reply: Reply


@dataclass(frozen=True, slots=True)
class ObservedMany:
    """Hold what an Observer wrote about each section of a request, and the answer.

    A section that the answer says nothing readable about is None.
    """

    outputs: tuple[ObserverOutput | None, ...]
    reply: Reply


async def observe(
    request: ObserverRequest,
    *,
    model: Model,
    tz: tzinfo,
    settings: ModelSettings | None = None,
    timeout: float = 120,
    media: Media = NO_MEDIA,
) -> Observed:
    """Return what the model observed in the request's messages; times it gives are in ``tz``.

    ``media`` holds the pictures and files that the request's attachments name; one that is
    missing is only named. Raises BadOutput (EmptyOutput, UnparsableOutput, DegenerateOutput),
    which carries the reply as ``error.reply``; TimeoutError after ``timeout`` seconds; and what
    the model raises.
    """

    def read(text: str) -> ObserverOutput:
        return parse_observer(
            text, tz=tz, known=request.numbers, wanted=request.wanted, extract=request.extract
        )

    question = _question(request, model, settings, media)
    return Observed(*await ask_for(read, question, timeout=timeout))


async def observe_many(
    request: ObserverRequest,
    *,
    model: Model,
    tz: tzinfo,
    settings: ModelSettings | None = None,
    timeout: float = 120,
    media: Media = NO_MEDIA,
) -> ObservedMany:
    """Return what the model observed in each of the request's sections, in their order.

    Raises what ``observe`` does; UnparsableOutput only when no section can be read.
    """

    def read(text: str) -> tuple[ObserverOutput | None, ...]:
        return parse_observer_of(
            text,
            tz=tz,
            sections=request.sections,
            wanted=request.wanted,
            extract=request.extract,
        )

    question = _question(request, model, settings, media)
    return ObservedMany(*await ask_for(read, question, timeout=timeout))


def _question(
    request: ObserverRequest, model: Model, settings: ModelSettings | None, media: Media
) -> Question:
    return Question("observer", request.instructions, _prompt(request, media), model, settings)


def _prompt(request: ObserverRequest, media: Media) -> list[UserContent]:
    """Return the parts of the prompt, each followed by the media that goes there."""
    prompt: list[UserContent] = []
    for index, text in enumerate(request.prompt):
        prompt.append(text)
        keys = (one.media for one in request.attachments if one.after == index)
        prompt += [media[key] for key in keys if key in media]
    return prompt
