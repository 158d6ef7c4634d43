"""Let whoever runs this see what it does: ids for logs, facts for metrics, spans for traces.

Theory of operation
-------------------
All three hang on the same few places. Who works on a turn or a cycle does so inside ``working``,
from which log records learn its ids. Where a turn or a cycle is closed, ``closed`` tells so after
the commit. Every call of a model is made inside ``calling``, every step of a turn inside
``stepping``. The composition root names who listens, with ``measure_with`` and ``trace_with``;
by default nobody does. Whoever listens can fail no work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from decimal import Decimal
from time import perf_counter
from types import MappingProxyType
from typing import Literal
from uuid import UUID

from django.db import transaction
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanContext,
    StatusCode,
    Tracer,
    get_current_span,
)
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.usage import RequestUsage, RunUsage

logger = logging.getLogger(__name__)

Outcome = Literal["done", "failed", "cancelled"]
Kind = Literal["turn", "cycle"]

NO_IDS: Mapping[str, str] = MappingProxyType({})
#: How work may end that somebody should look at.
BAD = frozenset({"failed", "interrupted"})


@dataclass(frozen=True, slots=True)
class Closed:
    """Tell how a turn or a cycle ended; ``name`` is the kind of a cycle.

    ``seconds`` is None where this process did not do the work, as when it closes what a dead one
    left.
    """

    kind: Kind
    name: str
    status: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Stepped:
    """Tell how long a step of a turn took: its request prepared, answered and stored."""

    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class Called:
    """Tell what one call of a model took; ``cost`` is in US dollars, None where it is unknown.

    ``first_token`` is None where the answer was not streamed.
    """

    asker: str
    model: str
    outcome: Outcome
    seconds: float
    first_token: float | None
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


Fact = Closed | Stepped | Called
Meter = Callable[[Fact], None]


@dataclass(frozen=True, slots=True)
class _Work:
    """Hold what is under way here: its ids, what closes with it, since when, and its span."""

    ids: Mapping[str, str]
    keys: frozenset[UUID]
    began: float
    span: Span


_meter: Meter | None = None
_tracer: Tracer | None = None
_work: ContextVar[_Work | None] = ContextVar("work", default=None)
_cause: ContextVar[SpanContext | None] = ContextVar("cause", default=None)


def measure_with(meter: Meter | None) -> Meter | None:
    """Tell facts to a meter from now on, from any thread; return the one it replaces."""
    global _meter
    previous, _meter = _meter, meter
    return previous


def trace_with(tracer: Tracer | None) -> Tracer | None:
    """Make spans with a tracer from now on, none with None; return the one it replaces."""
    global _tracer
    previous, _tracer = _tracer, tracer
    return previous


def is_watched() -> bool:
    """Tell whether anybody listens."""
    return not (_meter is None and _tracer is None)


def ids() -> Mapping[str, str]:
    """Return the ids of what is under way here: ``turn``, ``thread`` and ``cycle``, as known."""
    work = _work.get()
    return NO_IDS if work is None else work.ids


@contextmanager
def working(
    kind: Kind, keys: Collection[UUID], *, thread: UUID | None, name: str = ""
) -> Iterator[None]:
    """Do the work on a turn, or on the cycles of one call, inside the block.

    A cycle that a turn waits for has the turn's ids too.
    """
    found = {**ids(), kind: ",".join(map(str, keys))}
    if thread is not None:
        found["thread"] = str(thread)
    with _spanning(f"{kind} {name}".strip(), found) as span:
        token = _work.set(_Work(found, frozenset(keys), perf_counter(), span))
        try:
            yield
        finally:
            _work.reset(token)


def closed(kind: Kind, key: UUID, status: str, *, name: str = "") -> None:
    """Tell how a turn or a cycle ended, once the surrounding transaction is committed."""
    if is_watched():
        transaction.on_commit(lambda: _closed(kind, key, status, name), robust=True)


def _closed(kind: Kind, key: UUID, status: str, name: str) -> None:
    work = _work.get()
    if work is None or key not in work.keys:
        _tell(Closed(kind, name, status, None))
        return
    work.span.set_attribute("omsite.status", status)
    if status in BAD:
        work.span.set_status(StatusCode.ERROR)
    _tell(Closed(kind, name, status, perf_counter() - work.began))


@contextmanager
def stepping() -> Iterator[None]:
    """Take one step of a turn inside the block."""
    with _spanning("step", ids()) as span:

        def tell(outcome: Outcome, seconds: float) -> None:
            if outcome == "failed":
                span.set_status(StatusCode.ERROR)
            _tell(Stepped(outcome, seconds))

        with _timed(tell, perf_counter()):
            yield


class Call:
    """Take down what comes of one call of a model."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.first_token: float | None = None
        self.usage: RequestUsage | RunUsage = RequestUsage()

    def heard(self) -> None:
        """Note that a piece of the answer came."""
        if self.first_token is None:
            self.first_token = perf_counter() - self.began

    def used(self, usage: RequestUsage | RunUsage) -> None:
        """Note what the whole answer took."""
        self.usage = usage


@contextmanager
def calling(asker: str, model: str) -> Iterator[Call]:
    """Call a model inside the block, and note there what comes of it."""
    call = Call()

    def tell(outcome: Outcome, seconds: float) -> None:
        usage = call.usage
        _tell(
            Called(
                asker,
                model,
                outcome,
                seconds,
                call.first_token,
                usage.input_tokens,
                usage.output_tokens,
                usage.cost,
            )
        )

    with _timed(tell, call.began):
        yield call


def apart() -> Context:
    """Return a context for work of its own, which knows of this one only as what made it due."""
    context = Context()
    context.run(caused_by, cause())
    return context


def cause() -> SpanContext | None:
    """Return what makes due whatever becomes due here: the turn or the cycle, not a part of it."""
    work = _work.get()
    span = get_current_span() if work is None else work.span
    found = span.get_span_context()
    return found if found.is_valid else None


def caused_by(span: SpanContext | None) -> None:
    """Link the work that begins in this context from now on to what made it due."""
    _cause.set(span)


@contextmanager
def _spanning(name: str, ids: Mapping[str, str]) -> Iterator[Span]:
    """Make a span of a block; of what is raised there it keeps nothing, since it may be private."""
    if _tracer is None:
        yield INVALID_SPAN
        return
    cause = _cause.get()
    inside = get_current_span().get_span_context().is_valid
    with _tracer.start_as_current_span(
        name,
        attributes={f"omsite.{key}.id": value for key, value in ids.items()},
        links=[Link(cause)] if cause is not None and not inside else [],
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


@contextmanager
def _timed(tell: Callable[[Outcome, float], None], began: float) -> Iterator[None]:
    outcome: Outcome = "failed"
    try:
        yield
        outcome = "done"
    except (asyncio.CancelledError, RunCancelled):
        outcome = "cancelled"
        raise
    finally:
        tell(outcome, perf_counter() - began)


def _tell(fact: Fact) -> None:
    if _meter is None:
        return
    try:
        _meter(fact)
    except Exception:
        logger.exception("A fact was not measured: %s", fact)
