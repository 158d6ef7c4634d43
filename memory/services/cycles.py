"""Claim, keep and end cycles.

Claim – think – commit: a short transaction opens the cycle and freezes its request; the
model is awaited with no transaction, lock or database thread held; a short transaction
checks that the cycle is still ours and writes. When the world moved on meanwhile the
commit gives up and overwrites nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from pydantic_ai.models import Model

from memory import llm
from memory.ask import Reply, reply_of
from memory.events import CycleFailed, CycleStarted
from memory.messages import safe_text
from memory.models import Blob, Cycle
from memory.models.blob import digest
from memory.models.cycle import CycleLost
from memory.publish import publish

from .look import View

logger = logging.getLogger(__name__)

ATTEMPTS_BEFORE_FALLBACK = 5
LONGEST_BACKOFF = 120
FALLBACK_MODEL = "offline"

Resolve = Callable[[str], Model]


def resolve_model(name: str) -> Model:
    """Return the model of a name, with the server's settings. Raises llm.ModelUnavailable.

    The first use of a provider imports its package, which takes seconds: not for a loop.
    """
    return llm.shared(name, delay=settings.OFFLINE_DELAY, base_url=settings.MODEL_BASE_URL)


@dataclass(frozen=True)
class Lane:
    """Hold what the last cycle of a lane says about the next one."""

    busy: bool
    resting: bool
    failures: int
    stalled_at: int | None

    @property
    def open(self) -> bool:
        """Tell whether a cycle may be claimed now."""
        return not (self.busy or self.resting)

    @property
    def fallback(self) -> bool:
        """Tell whether the offline extractor takes over, so that the tail cannot grow for ever."""
        return self.failures >= ATTEMPTS_BEFORE_FALLBACK


def lane_state(record_id: UUID, lane: str) -> Lane:
    """Return the state of a lane from its latest cycle."""
    latest = (
        Cycle.objects.filter(record_id=record_id, lane=lane)
        .annotate(now=Now())
        .order_by("-started_at", "-id")
        .first()
    )
    if latest is None:
        return Lane(busy=False, resting=False, failures=0, stalled_at=None)
    now = latest.now  # type: ignore[attr-defined]
    running = latest.status == Cycle.Status.RUNNING
    lapsed = running and latest.lease_expires_at < now
    # A lapsed cycle is one that failed; whoever claims next will say so.
    failed = lapsed or latest.status == Cycle.Status.FAILED
    rests = failed and latest.next_attempt_at is not None and latest.next_attempt_at > now
    return Lane(
        busy=running and not lapsed,
        resting=rests,
        failures=latest.attempt if failed else 0,
        stalled_at=latest.observation_tokens if _stalled(latest) else None,
    )


def _stalled(cycle: Cycle) -> bool:
    return cycle.status == Cycle.Status.FAILED and cycle.next_attempt_at is None


def open_cycle(view: View, lane: str, *, request: str, **fields: Any) -> Cycle | None:
    """Claim a lane, taking it from a lapsed cycle; return None when another holds it.

    Must run inside a transaction. The request's text is kept under its hash.
    """
    retire_lapsed(Cycle.objects.filter(record=view.record, lane=lane))
    try:
        with transaction.atomic():
            cycle = Cycle.objects.create(
                record=view.record,
                lane=lane,
                thread=view.thread,
                epoch=view.record.epoch,
                lease_expires_at=Now() + settings.LEASE,
                request_hash=digest(request),
                **fields,
            )
    except IntegrityError:
        return None
    Blob.objects.keep([request])
    publish(CycleStarted(thread=view.thread.pk, record=view.record.pk, cycle=cycle.pk))
    return cycle


def retire_lapsed(cycles: Any) -> int:
    """End the lapsed ones among some cycles as interrupted; return how many there were."""
    lapsed = list(cycles.lapsed())
    for cycle in lapsed:
        with transaction.atomic():
            if Cycle.objects.filter(pk=cycle.pk, owner=cycle.owner).retire_lapsed(
                reason="The process that ran this stopped before it was done."
            ):
                _publish_failed(cycle)
    return len(lapsed)


@asynccontextmanager
async def kept_alive(cycle: Cycle) -> AsyncIterator[None]:
    """Renew the cycle's lease until the block ends."""
    task = asyncio.create_task(_renew(cycle))
    try:
        yield
    finally:
        task.cancel()


async def _renew(cycle: Cycle) -> None:
    seconds = settings.LEASE.total_seconds()
    while True:
        await asyncio.sleep(seconds / 4)
        try:
            await sync_to_async(cycle.renew)(seconds)
        except CycleLost:
            return  # The commit will find out.
        except Exception:
            # A database that is away for a moment must not end the work.
            logger.warning("The lease of cycle %s was not renewed.", cycle.pk, exc_info=True)


def costs(reply: Reply) -> dict[str, Any]:
    """Return what a reply brought and cost as fields of its cycle, keeping its text."""
    text = safe_text(reply.text)
    Blob.objects.keep([text])
    return {
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost": reply.cost,
        "reply_hash": digest(text),
    }


def fail(cycle: Cycle, error: BaseException, *, retry: bool = True) -> None:
    """End a cycle as failed with a reason for people; the lane rests, longer each time."""
    reply = reply_of(error)
    with transaction.atomic():
        try:
            cycle.finish(
                Cycle.Status.FAILED,
                error=reason(error),
                next_attempt_at=Now() + backoff(cycle.attempt) if retry else None,
                **(costs(reply) if reply is not None else {}),
            )
        except CycleLost:
            return  # Another process ended it already and said so.
        _publish_failed(cycle)


def discard(cycle: Cycle, why: str) -> None:
    """End a cycle whose work is no longer wanted; nothing of it is shown."""
    with transaction.atomic():
        try:
            cycle.finish(Cycle.Status.DISCARDED, error=why)
        except CycleLost:
            return
        _publish_failed(cycle)


def backoff(attempt: int) -> timedelta:
    """Return how long a lane rests after so many failures in a row."""
    return timedelta(seconds=min(2 ** min(attempt, 7), LONGEST_BACKOFF))


def reason(error: BaseException) -> str:
    """Return a failure in one sentence for people."""
    return str(error) if isinstance(error, ValueError) else llm.explain(error)


def _publish_failed(cycle: Cycle) -> None:
    assert cycle.thread_id is not None
    publish(CycleFailed(thread=cycle.thread_id, record=cycle.record_id, cycle=cycle.pk))
