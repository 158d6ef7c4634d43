"""Observe ranges of messages: ahead of time (buffer), or at once while a turn waits.

One call of the model may serve several threads of a shared record. Each of them has a cycle
and a lane of its own. They are written together, or else each alone: what fails or comes late
for one thread costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction

from memory import hooks, telemetry
from memory.ask import reply_of
from memory.dispatch import dispatch
from memory.events import MemoryActivated
from memory.hooks import Occasion
from memory.models import Cycle, MemoryRecord, Observation, Revision
from memory.models.cycle import REFLECTOR_LANE, CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.publish import publish

from .activate import rename, revision, show
from .claims import FALLBACK, Claimed, claim, numbers_of, request_text
from .cycles import (
    Resolve,
    discard,
    fail,
    kept_alive,
    logger,
    publish_done,
    resolve_model,
)
from .late import at_most
from .look import look, read
from .outcome import Outcome, finish
from .think import Thoughts, think


async def run(claimed: Claimed, *, resolve: Resolve = resolve_model) -> bool:
    """Think and commit. Return False when any of it failed and rests; nothing is raised."""
    cycles = [share.cycle for share in claimed.shares]
    only = claimed.cycle.thread_id if len(cycles) == 1 else None
    keys = [cycle.pk for cycle in cycles]
    with telemetry.working("cycle", keys, thread=only, name=claimed.cycle.kind):
        return await _run(claimed, cycles, only, resolve)


async def _run(
    claimed: Claimed, cycles: Sequence[Cycle], only: UUID | None, resolve: Resolve
) -> bool:
    occasion = Occasion(only, claimed.cycle.record.resource_id, claimed.cycle.trigger)
    try:
        async with kept_alive(*cycles):
            thoughts = await think(
                claimed.material,
                claimed.request,
                occasion,
                hooks=hooks.configured(),
                resolve=resolve,
                fallback=claimed.fallback,
            )
    except Exception as error:  # noqa: BLE001 - whatever fails here must not fail a turn
        logger.info("Cycle %s failed: %s", claimed.cycle.pk, error)
        await sync_to_async(_fail_each)(cycles, error)
        return False
    return await sync_to_async(_commit_all)(claimed, thoughts)


def _fail_each(cycles: Sequence[Cycle], error: Exception) -> None:
    # What the call cost is told once, on the cycle of its first thread.
    reply = reply_of(error)
    for cycle in cycles:
        fail(cycle, error, reply=reply)
        reply = reply and reply.free()


def _commit_all(claimed: Claimed, thoughts: Thoughts) -> bool:
    """Commit the threads of a call at once; where that fails, each alone."""
    for share in claimed.shares:
        share.cycle.request_text = request_text(thoughts.request)
    if len(claimed.shares) > 1 and _commit_together(claimed, thoughts):
        return True
    return _commit_each(claimed, thoughts)


def _commit_together(claimed: Claimed, thoughts: Thoughts) -> bool:
    """Commit all threads of a call, or none; return whether they are."""
    observing = claimed.cycle.kind == Cycle.Kind.OBSERVE
    if observing or any(thought.output is None for thought in thoughts.each):
        return False
    try:
        with transaction.atomic():
            _record(claimed.cycle).hold()
            finish([_outcome(claimed, thoughts, n) for n in range(len(claimed.shares))])
            for share in claimed.shares:
                publish_done(share.cycle)
    except Exception as error:  # noqa: BLE001 - what fails together is told apart alone
        logger.info("Call %s is written thread by thread: %s", claimed.cycle.call, error)
        return False
    return True


def _commit_each(claimed: Claimed, thoughts: Thoughts) -> bool:
    """Commit thread by thread: one that fails costs the others nothing."""
    went_well = True
    for index, share in enumerate(claimed.shares):
        try:
            if thoughts.each[index].output is None:
                raise SilentReply("The reply says nothing about this conversation.")
            commit(claimed, thoughts, index)
        except (CycleLost, RecordMoved, CursorMoved) as moved:
            discard(share.cycle, str(moved))
            continue
        except Exception as error:  # noqa: BLE001 - as above
            logger.info("Cycle %s failed: %s", share.cycle.pk, error)
            fail(share.cycle, error, reply=thoughts.reply)
            went_well = False
        # What the call cost is told once, on the first cycle that is not discarded.
        thoughts = replace(thoughts, reply=thoughts.reply.free())
    return went_well


class SilentReply(ValueError):
    """Say that a reply about several threads leaves one of them out."""


def commit(claimed: Claimed, thoughts: Thoughts, index: int = 0) -> Observation:
    """Write one thread's observation and move its cursor, if the world is as it was at the claim.

    Raises CycleLost, RecordMoved or CursorMoved, with nothing written.
    """
    outcome = _outcome(claimed, thoughts, index)
    cycle = outcome.cycle
    record = _record(cycle)
    with transaction.atomic():
        if cycle.kind == Cycle.Kind.OBSERVE:
            observation = _show_at_once(record, outcome)
        else:
            record.hold()
            (observation,) = finish([outcome])
        publish_done(cycle)
    return observation


def _outcome(claimed: Claimed, thoughts: Thoughts, index: int) -> Outcome:
    share, numbers = claimed.shares[index], numbers_of(thoughts.request, index)
    return Outcome(share, thoughts.reply, thoughts.note, thoughts.each[index], numbers)


def _record(cycle: Cycle) -> MemoryRecord:
    """Return the record as it was claimed in, to be changed if it still is."""
    return MemoryRecord(pk=cycle.record_id, epoch=cycle.epoch)


def _show_at_once(record: MemoryRecord, outcome: Outcome) -> Observation:
    """Write an observation and show it, with all that is buffered before it, as one revision."""
    cycle = outcome.cycle
    assert cycle.thread_id is not None
    view = look(cycle.thread_id)
    if view is None or view.record.pk != record.pk:
        raise RecordMoved("The memory of this conversation was closed meanwhile.")
    draft = Observation(
        thread_id=cycle.thread_id,
        first_position=cycle.first_position,
        thread_title=outcome.output.thread_title[:200],
    )
    rename([*view.buffered, draft])
    view.record.epoch = cycle.epoch
    number = view.record.advance()
    (observation,) = finish([outcome])
    shown = [*view.buffered, observation]
    show(view, shown, number)
    before = view.snapshot().pending_tokens
    covered = sum(o.message_tokens for o in shown)
    revision(
        view,
        number,
        Revision.Cause.OBSERVE,
        cycle=cycle,
        trigger="ceiling" if cycle.trigger == FALLBACK else cycle.trigger,
        message_tokens=(before, max(0, before - covered)),
    )
    publish(MemoryActivated(thread=cycle.thread_id, record=record.pk, revision=number))
    dispatch(cycle.thread_id)
    return observation


async def observe_while_waiting(
    thread_id: UUID, *, seconds: float, resolve: Resolve = resolve_model
) -> None:
    """Let a turn wait for one observation, or for the one that is running, within a bound.

    The work goes on in the background when the bound is reached; nothing is raised. What
    somebody cancels is not waited for.
    """
    claimed = await sync_to_async(claim)(thread_id, waiting=True)

    async def wanted() -> bool:
        return claimed is None or await sync_to_async(_runs)(claimed)

    work = await at_most(seconds, _work(thread_id, claimed, resolve), wanted=wanted)
    if claimed is None:
        work.cancel()


POLL_SECONDS = 0.1


async def _work(thread_id: UUID, claimed: Claimed | None, resolve: Resolve) -> None:
    if claimed is not None:
        await run(claimed, resolve=resolve)
        return
    under_way = await sync_to_async(_under_way)(thread_id)
    while under_way:
        await asyncio.sleep(POLL_SECONDS)
        under_way = await sync_to_async(_still)(under_way)


def _runs(claimed: Claimed) -> bool:
    """Tell whether any cycle of a claim is under way still."""
    mine = [share.cycle.pk for share in claimed.shares]
    return Cycle.objects.running().filter(pk__in=mine).exists()


def _under_way(thread_id: UUID) -> list[UUID]:
    """Return the observations of a thread's record that are under way, of any of its threads."""
    record = read(thread_id).record
    of_record = Cycle.objects.running().filter(record=record).exclude(lane=REFLECTOR_LANE)
    return _still([cycle.pk for cycle in of_record])


def _still(cycles: Sequence[UUID]) -> list[UUID]:
    """Return which of some cycles are under way still; a lapsed one is not."""
    mine = Cycle.objects.running().filter(pk__in=cycles)
    lapsed = Cycle.objects.lapsed().filter(pk__in=cycles)
    return list(mine.exclude(pk__in=lapsed.values("pk")).values_list("pk", flat=True))
