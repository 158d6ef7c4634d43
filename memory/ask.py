"""Ask a model for a text, and keep what it said and cost even when it is of no use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from memory.engine.parsing import BadOutput, DegenerateOutput

Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class Reply:
    """Hold what a model answered, and what all asking for it took.

    ``model`` is the name it was asked by; ``cost`` is in US dollars, or None where the model
    has no known price.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Question:
    """Hold one call: who asks, what the model is told, and the parts of its user message."""

    asker: str
    instructions: str
    prompt: Sequence[str]
    model: Model
    settings: ModelSettings | None = None


async def ask(question: Question) -> Reply:
    """Return what the model answers to one request; an answer without text is an empty one.

    Raises what the model raises: see ``memory.llm.explain``.
    """
    agent: Agent[None, str | None] = Agent(
        question.model,
        name=question.asker,
        instructions=question.instructions,
        # Allowing None keeps pydantic-ai from arguing with a model that says nothing: that
        # an answer is empty is for the reader to say.
        output_type=str | None,  # type: ignore[arg-type]
        retries=0,
    )
    result = await agent.run(list(question.prompt), model_settings=question.settings)
    usage = result.response.usage
    return Reply(
        text=result.output or "",
        # Not the name in the response: local servers answer with the path of their file.
        model=question.model.model_name,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=usage.cost,
    )


async def ask_for(
    read: Callable[[str], Output], question: Question, *, timeout: float
) -> tuple[Output, Reply]:
    """Return what ``read`` makes of the model's answer, and the answer.

    A degenerate answer is asked for once more, since the next one is often sound; the reply
    then sums up both. Raises BadOutput carrying the reply (see ``reply_of``), TimeoutError when
    it all takes longer than ``timeout`` seconds, and what the model raises.
    """
    async with asyncio.timeout(timeout):
        reply = await ask(question)
        try:
            return _read(read, reply), reply
        except DegenerateOutput:
            again = _together(reply, await ask(question))
            return _read(read, again), again


def reply_of(error: BaseException) -> Reply | None:
    """Return the answer that was of no use, if this failure carries one."""
    reply = getattr(error, "reply", None)
    return reply if isinstance(reply, Reply) else None


def _read(read: Callable[[str], Output], reply: Reply) -> Output:
    try:
        return read(reply.text)
    except BadOutput as error:
        # The engine knows nothing of replies, so its failures have no field for one.
        setattr(error, "reply", reply)  # noqa: B010
        raise


def _together(first: Reply, second: Reply) -> Reply:
    costs = (first.cost, second.cost)
    return replace(
        second,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cost=None if None in costs else sum((c for c in costs if c is not None), Decimal()),
    )
