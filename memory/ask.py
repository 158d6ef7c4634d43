"""Ask a model for a text, and keep what it said and cost even when it is of no use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Generic, TypeVar

from pydantic_ai import Agent
from pydantic_ai.exceptions import OutputTokenLimitExceeded
from pydantic_ai.messages import UserContent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from memory.engine.parsing import BadOutput, DegenerateOutput, UnparsableOutput
from memory.llm import is_transient
from memory.telemetry import calling

Output = TypeVar("Output")

__all__ = ["Question", "Reply", "ask", "ask_for", "is_transient", "reply_of", "retry_after"]

LONGEST_WAIT = 3600.0
CUT_OFF = "was cut off at the limit of its length"


@dataclass(frozen=True, slots=True)
class Reply:
    """Hold what a model answered, and what all asking for it took.

    ``model`` is the name it was asked by; ``cost`` is in US dollars, or None where the model
    has no known price. ``cut`` tells that the model stopped at its output limit.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    cut: bool = False

    def free(self) -> Reply:
        """Return the reply with nothing to pay, where its call is billed elsewhere."""
        return replace(self, input_tokens=0, output_tokens=0, cost=None)

    def with_bill(self, bill: RunUsage) -> Reply:
        """Return the reply with what further calls of the same model took."""
        if not bill.requests:
            return self
        return replace(
            self,
            input_tokens=self.input_tokens + bill.input_tokens,
            output_tokens=self.output_tokens + bill.output_tokens,
            cost=None if self.cost is None or bill.cost is None else self.cost + bill.cost,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """Hold one call: who asks, what the model is told, and the parts of its user message."""

    asker: str
    instructions: str
    prompt: Sequence[UserContent]
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
    with calling(question.asker, question.model.model_name) as call:
        result = await agent.run(list(question.prompt), model_settings=question.settings)
        call.used(result.response.usage)
    usage = result.response.usage
    return Reply(
        text=result.output or "",
        # Not the name in the response: local servers answer with the path of their file.
        model=question.model.model_name,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=usage.cost,
        cut=result.response.finish_reason == "length",
    )


async def ask_for(
    read: Callable[[str], Output], question: Question, *, timeout: float, whole: bool = False
) -> tuple[Output, Reply]:
    """Return what ``read`` makes of the model's answer, and the answer.

    An answer that repeats itself, or was cut off at the model's output limit, is asked for once
    more, the model being told what was wrong; the reply then sums up both. What can be read of
    an answer cut off twice counts, unless only a ``whole`` one will do. Raises BadOutput
    carrying the reply (see ``reply_of``), TimeoutError when it all takes longer than
    ``timeout`` seconds, and what the model raises.
    """
    async with asyncio.timeout(timeout):
        first = await _attempt(read, question)
        if not first.problem:
            return _settled(first, first, whole=whole)
        advice = _advice(first.problem)
        second = await _attempt(read, replace(question, prompt=[*question.prompt, advice]))
    return _settled(first, second, whole=whole)


def reply_of(error: BaseException) -> Reply | None:
    """Return the answer that was of no use, if this failure carries one."""
    reply = getattr(error, "reply", None)
    return reply if isinstance(reply, Reply) else None


def retry_after(error: BaseException) -> float | None:
    """Return for how many seconds the provider asked to be left alone, if it did.

    An hour at most: what lies beyond is for the schedule of retries to say. Whether asking again
    can help at all tells ``is_transient``.
    """
    waits = (getattr(one, "retry_after", None) for one in _chain(error))
    seconds = next((wait for wait in waits if isinstance(wait, int | float)), None)
    return min(max(float(seconds), 0.0), LONGEST_WAIT) if seconds is not None else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised from or is made of, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        waiting += [one for one in (*inner, current.__cause__, current.__context__) if one]


@dataclass(frozen=True, slots=True)
class _Attempt(Generic[Output]):
    """Hold one asking: what was read or why nothing was, and what asking again may mend."""

    output: Output | None
    reply: Reply | None
    problem: str = ""
    error: Exception | None = None


async def _attempt(read: Callable[[str], Output], question: Question) -> _Attempt[Output]:
    """Ask once; no answer that cannot be read is raised yet."""
    try:
        reply = await ask(question)
    except OutputTokenLimitExceeded as error:
        return _Attempt(None, None, CUT_OFF, error)
    cut = reply.cut and not _is_closed(reply.text)
    try:
        return _Attempt(read(reply.text), reply, CUT_OFF if cut else "")
    except DegenerateOutput as error:
        return _Attempt(None, reply, error.problem, error)
    except BadOutput as error:
        return _Attempt(None, reply, CUT_OFF if cut else "", error)


def _settled(
    first: _Attempt[Output], second: _Attempt[Output], *, whole: bool
) -> tuple[Output, Reply]:
    """Return the better of two attempts, which may be the same one, and the bill of both."""
    reply = second.reply if first is second else _together(first.reply, second.reply)
    usable = [second] if whole else [second, first]
    best = next((one.output for one in usable if _is_usable(one, whole=whole)), None)
    if best is not None and reply is not None:
        return best, reply
    error = second.error or UnparsableOutput(second.problem, reply.text if reply else "")
    if reply is not None:
        _carry(error, reply)
    raise error


def _is_usable(attempt: _Attempt[Output], *, whole: bool) -> bool:
    return attempt.output is not None and not (whole and attempt.problem)


def _is_closed(text: str) -> bool:
    """Tell whether the observations were complete when a reply was cut off."""
    return any(line.strip().lower().startswith("</observations>") for line in text.split("\n"))


def _advice(problem: str) -> str:
    return (
        f"<instructions>\nYour first reply {problem} and was thrown away. Write it anew, in the "
        "form your instructions give and at most half as long: fewer lines, each said once, "
        "what matters most first.\n</instructions>"
    )


def _carry(error: Exception, reply: Reply) -> None:
    # The engine knows nothing of replies, so its failures have no field for one.
    setattr(error, "reply", reply)  # noqa: B010


def _together(first: Reply | None, second: Reply | None) -> Reply | None:
    if first is None or second is None:
        return first or second
    costs = (first.cost, second.cost)
    return replace(
        second,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cost=None if None in costs else sum((c for c in costs if c is not None), Decimal()),
    )
