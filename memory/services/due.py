"""Run what is due in the background, until nothing is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction

from memory.engine.lifecycle import Buffer, BufferReflection, Reflect
from memory.models import Thread

from . import claims as observations
from . import observe, reflect
from .cycles import Resolve, resolve_model
from .look import View, look
from .prepare import due

Claimed = observations.Claimed | reflect.Claimed


@dataclass(frozen=True)
class Claims:
    """Hold the cycles claimed together; ``more`` tells that others are due after them."""

    claimed: Sequence[Claimed] = ()
    more: bool = False
    at_once: int = 1


class Work(StrEnum):
    """Name whose cycles are run: workers may be kept for the one or the other."""

    ALL = "all"
    OBSERVER = "observer"
    REFLECTOR = "reflector"


async def run_due(
    thread_id: UUID, *, resolve: Resolve = resolve_model, work: Work = Work.ALL
) -> int:
    """Claim and run due cycles of a thread's record; return how many.

    Those claimed together run together, a bounded number at a time. A failed one ends the
    run: its lane rests, and the sweep comes back to it.
    """
    cycles = 0
    claims = await sync_to_async(claim)(thread_id, work)
    while claims.claimed:
        cycles += len(claims.claimed)
        if not await run_all(claims, resolve) or not claims.more:
            break
        claims = await sync_to_async(claim)(thread_id, work)
    return cycles


async def run_all(claims: Claims, resolve: Resolve) -> bool:
    """Run claimed cycles, so many at a time as is allowed; return False when one failed."""
    few = asyncio.Semaphore(claims.at_once)

    async def run(claimed: Claimed) -> bool:
        async with few:
            if isinstance(claimed, observations.Claimed):
                return await observe.run(claimed, resolve=resolve)
            return await reflect.run(claimed, resolve=resolve)

    return all(await asyncio.gather(*map(run, claims.claimed)))


def claim(thread_id: UUID, work: Work = Work.ALL) -> Claims:
    """Claim the cycles that are due for a thread's record; none of one that was erased."""
    try:
        return _claim(thread_id, work)
    except (Thread.DoesNotExist, IntegrityError):
        # A claim refers to its thread, which whoever erases it deletes first.
        if Thread.objects.filter(pk=thread_id).exists():
            raise
        return Claims()


def _claim(thread_id: UUID, work: Work) -> Claims:
    """Claim observations first."""
    with transaction.atomic():
        view = look(thread_id, lanes=True)
        if view is None:
            return Claims()
        decisions = due(view, resting=view.options.buffer_on_idle)
        observing = [] if work == Work.REFLECTOR else observations.claims_of(view, decisions)
        if observing:
            # A buffered observation changes nothing that is visible: what else is due now is
            # due after it, and nothing new, unless somebody says so.
            background = Buffer | BufferReflection | Reflect
            taken = sum(len(each.shares) for each in observing)
            more = sum(isinstance(d, background) for d in decisions) > taken
            more |= _is_left(view, observing)
            return Claims(observing, more, view.options.parallel_calls)
        reflecting = None if work == Work.OBSERVER else reflect.claim_of(view)
        return Claims([reflecting], more=True) if reflecting is not None else Claims()


def _is_left(view: View, claimed: Sequence[observations.Claimed]) -> bool:
    """Tell whether so much lies beyond the ranges claimed that more is due after them."""
    snapshot = view.snapshot()
    interval = view.options.thresholds().buffer_interval(snapshot.pending_tokens)
    taken = sum(share.cycle.message_tokens for each in claimed for share in each.shares)
    unbuffered = sum(m.tokens for tail in snapshot.tails for m in tail.unbuffered)
    return interval is not None and unbuffered - taken >= interval
