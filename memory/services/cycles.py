"""Claim, keep and end cycles.

Claim – think – commit: a short transaction opens the cycle and freezes its request; the
model is awaited with no transaction, lock or database thread held; a short transaction
checks that the cycle is still ours and writes. When the world moved on meanwhile the
commit gives up and overwrites nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Now
from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.models import Model

from memory import llm, telemetry
from memory.ask import Reply, is_transient, reply_of, retry_after
from memory.events import CycleFailed, CycleFinished, CycleStarted
from memory.messages import safe_text
from memory.models import Blob, Cycle, MemoryRecord, Thread
from memory.models.blob import digest
from memory.models.cycle import CycleLost
from memory.models.record import RecordMoved
from memory.models.state import LaneRow
from memory.models.swift import FromNow
from memory.providers import bounded
from memory.publish import publish
from memory.tiers import TierExceeded

from .look import View

logger = logging.getLogger(__name__)

ATTEMPTS_BEFORE_FALLBACK = 5
LONGEST_BACKOFF = 120
FALLBACK_MODEL = "offline"

Resolve = Callable[[str], Model]


def resolve_model(name: str) -> Model:
    """Return the model of a name, with the server's settings. Raises llm.ModelUnavailable.

    So many calls of its provider are under way at once as the settings allow; others wait. The
    first use of a provider imports its package, which takes seconds: not for a loop.
    """
    url = settings.MODEL_BASE_URL
    model = llm.shared(name, delay=settings.OFFLINE_DELAY, base_url=url)
    return bounded(name, model, getattr(settings, "CALLS_PER_PROVIDER", 0), base_url=url)


class LaneTaken(Exception):
    """Tell that another claim came first."""


@dataclass(frozen=True)
class Lane:
    """Hold what the last cycle of a lane says about the next one."""

    busy: bool
    lapsed: bool
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


def lane_of(row: LaneRow) -> Lane:
    """Return what the latest cycle of a lane means for the next one."""
    # A lapsed cycle is one that failed; whoever claims next will say so. A cancelled one rests
    # like a failed one, but nothing went wrong: it does not count.
    failed = (row.running and row.lapsed) or row.failed or row.cancelled
    return Lane(
        busy=row.running and not row.lapsed,
        lapsed=row.running and row.lapsed,
        resting=failed and row.resting,
        failures=row.attempt - row.cancelled if failed else 0,
        stalled_at=row.observation_tokens if row.failed and row.final else None,
    )


def observer_lanes(record_id: UUID, threads: Sequence[UUID]) -> Mapping[UUID, Lane]:
    """Return the states of threads' Observers from the latest cycle of each, in one statement."""
    of_thread = Cycle.objects.filter(
        record=record_id, thread=OuterRef("pk"), kind__in=(Cycle.Kind.BUFFER, Cycle.Kind.OBSERVE)
    ).order_by("-started_at", "-id")
    latest = Thread.objects.filter(pk__in=threads).values(last=Subquery(of_thread.values("pk")[:1]))
    found = {
        cycle.thread_id: _lane_of_cycle(cycle)
        for cycle in Cycle.objects.filter(pk__in=latest).annotate(now=Now())
    }
    return {thread: found.get(thread) or lane_of(LaneRow()) for thread in threads}


def _lane_of_cycle(latest: Cycle) -> Lane:
    now, next_attempt = latest.now, latest.next_attempt_at  # type: ignore[attr-defined]
    return lane_of(
        LaneRow(
            running=latest.status == Cycle.Status.RUNNING,
            lapsed=latest.lease_expires_at < now,
            failed=latest.status == Cycle.Status.FAILED,
            cancelled=latest.status == Cycle.Status.CANCELLED,
            final=next_attempt is None,
            resting=next_attempt is not None and next_attempt > now,
            attempt=latest.attempt,
            observation_tokens=latest.observation_tokens,
        )
    )


def open_cycle(
    view: View, lane: str, *, request: str, lapsed: bool = False, **fields: Any
) -> Cycle:
    """Claim a lane, taking it from a lapsed cycle. Raises LaneTaken when another holds it.

    Must run inside a transaction. The request's text is stored under its hash when the cycle
    ends: one that is killed leaves the hash alone.
    """
    taken_from = [lane] if lapsed else []
    return open_cycles(view, {lane: fields}, request=request, lapsed=taken_from)[0]


def open_cycles(
    view: View,
    lanes: Mapping[str, Mapping[str, Any]],
    *,
    request: str,
    lapsed: Collection[str] = (),
) -> list[Cycle]:
    """Claim the lanes of one call, or none; as ``open_cycle`` claims one."""
    if lapsed:
        retire_lapsed(Cycle.objects.filter(record=view.record, lane__in=lapsed))
    cycles = [_cycle(view, lane, request, fields) for lane, fields in lanes.items()]
    try:
        with transaction.atomic():
            Cycle.objects.bulk_create(cycles)
    except IntegrityError:
        raise LaneTaken from None
    for cycle in cycles:
        assert cycle.thread_id is not None
        publish(CycleStarted(thread=cycle.thread_id, record=view.record.pk, cycle=cycle.pk))
    return cycles


def _cycle(view: View, lane: str, request: str, fields: Mapping[str, Any]) -> Cycle:
    cycle = Cycle(
        record=view.record,
        lane=lane,
        epoch=view.record.epoch,
        lease_expires_at=Now() + settings.LEASE,
        request_hash=digest(request),
        **fields,
    )
    cycle.request_text = request
    return cycle


def retire_lapsed(cycles: Any) -> int:
    """End the lapsed ones among some cycles as interrupted; return how many there were."""
    lapsed = list(cycles.lapsed())
    for cycle in lapsed:
        with transaction.atomic():
            if Cycle.objects.filter(pk=cycle.pk, owner=cycle.owner).retire_lapsed(
                reason="The process that ran this stopped before it was done."
            ):
                publish_failed(cycle, "interrupted")
    return len(lapsed)


@asynccontextmanager
async def kept_alive(*cycles: Cycle) -> AsyncIterator[None]:
    """Renew the leases of cycles until the block ends."""
    tasks = [asyncio.create_task(_renew(cycle)) for cycle in cycles]
    try:
        yield
    finally:
        for task in tasks:
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


def costs(cycle: Cycle, reply: Reply) -> dict[str, Any]:
    """Return what a reply brought and cost as fields of its cycle, keeping both texts."""
    text = safe_text(reply.text)
    Blob.objects.keep([cycle.request_text, text])
    return {
        **_spent(reply),
        "request_hash": digest(cycle.request_text),
        "reply_hash": digest(text),
    }


def _spent(reply: Reply) -> dict[str, Any]:
    return {
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost": reply.cost,
    }


def fail(
    cycle: Cycle, error: BaseException, *, retry: bool = True, reply: Reply | None = None
) -> None:
    """End a cycle as failed with a reason for people; the lane rests, longer each time.

    ``reply`` is what the model answered, where the error does not carry it.
    """
    reply = reply or reply_of(error)
    with transaction.atomic():
        try:
            cycle.finish(
                Cycle.Status.FAILED,
                error=reason(error),
                next_attempt_at=FromNow(rest_after(cycle.attempt, error)) if retry else None,
                **_of_failure(cycle, reply),
            )
        except CycleLost:
            # Another process ended it already and said so. The texts go too: they may have
            # been erased meanwhile.
            transaction.set_rollback(True)
            return
        publish_failed(cycle, Cycle.Status.FAILED.value)


def _of_failure(cycle: Cycle, reply: Reply | None) -> dict[str, Any]:
    """Return what a failed call cost, keeping its texts unless they may be erased by now."""
    try:
        MemoryRecord(pk=cycle.record_id, epoch=cycle.epoch).hold()
    except RecordMoved:
        return {"request_hash": ""} | ({} if reply is None else _spent(reply))
    return _asked(cycle) if reply is None else costs(cycle, reply)


def _asked(cycle: Cycle) -> dict[str, Any]:
    Blob.objects.keep([cycle.request_text])
    return {}


def discard(cycle: Cycle, why: str) -> None:
    """End a cycle whose work is no longer wanted; nothing of it is shown."""
    with transaction.atomic():
        try:
            cycle.finish(Cycle.Status.DISCARDED, error=why)
        except CycleLost:
            return
        publish_failed(cycle, Cycle.Status.DISCARDED.value)


def backoff(attempt: int) -> timedelta:
    """Return how long a lane rests after so many failures in a row."""
    return timedelta(seconds=min(2 ** min(attempt, 7), LONGEST_BACKOFF))


def rest_after(attempt: int, error: BaseException) -> timedelta:
    """Return how long a lane rests after a failure, at least as long as the provider asks for.

    What no repetition mends, like a key that is refused, rests the longest at once.
    """
    refused = isinstance(error, _REFUSALS) and not is_transient(error)
    rest = timedelta(seconds=LONGEST_BACKOFF) if refused else backoff(attempt)
    return max(rest, timedelta(seconds=retry_after(error) or 0))


_REFUSALS = (ModelAPIError, UserError, llm.ModelUnavailable, TierExceeded)


def reason(error: BaseException) -> str:
    """Return a failure in one sentence for people: in its own words only where they are ours."""
    ours = isinstance(error, ValueError) and type(error).__module__.startswith("memory.")
    return str(error) if ours else llm.explain(error)


def publish_done(cycle: Cycle) -> None:
    """Tell that a cycle brought its result, once that is committed."""
    if cycle.thread_id is not None:
        publish(CycleFinished(thread=cycle.thread_id, record=cycle.record_id, cycle=cycle.pk))
    telemetry.closed("cycle", cycle.pk, Cycle.Status.DONE.value, name=cycle.kind)


def publish_failed(cycle: Cycle, status: str) -> None:
    """Tell that a cycle ended without a result, once that is committed."""
    if cycle.thread_id is not None:  # Its thread may have been deleted.
        publish(CycleFailed(thread=cycle.thread_id, record=cycle.record_id, cycle=cycle.pk))
    telemetry.closed("cycle", cycle.pk, status, name=cycle.kind)
