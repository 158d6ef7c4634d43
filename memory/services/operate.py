"""Observe, buffer, activate and reflect because somebody asks, whatever the thresholds say.

What is under way already is waited for, within a bound; nobody's work is done twice. In a shared
record everything here is about all of its threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction

from memory.dispatch import dispatch
from memory.engine import on_demand
from memory.engine.lifecycle import Buffer, Observe
from memory.models import Cycle, Thread
from memory.models.cycle import REFLECTOR_LANE
from memory.models.record import CursorMoved, RecordMoved

from . import reflect
from .activate import activate, activate_reflection
from .change import Refused, give_up_reflections
from .claims import Claimed, claims_of
from .cycles import LaneTaken, Resolve, resolve_model
from .due import Claims, run_all
from .look import View, look
from .observe import POLL_SECONDS

WAIT_SECONDS = 120.0
MOST_ROUNDS = 100
MOST_TRIES = 5

Decide = Callable[[View], Sequence[Observe | Buffer]]


@dataclass(frozen=True)
class Gauges:
    """Hold what a record has at a revision: tokens raw, how many of them wait, tokens of lines."""

    revision: int
    raw: int
    buffered: int
    lines: int


@dataclass(frozen=True)
class Outcome:
    """Say what an operation did.

    ``done`` and ``failed`` count cycles, ``activated`` the chunks shown. ``late`` tells that
    somebody's cycle took longer than could be waited for. ``why`` says in sentences what
    failed, or why nothing was done; it is empty when all was done.
    """

    before: Gauges
    after: Gauges
    done: int = 0
    failed: int = 0
    activated: int = 0
    late: bool = False
    why: str = ""

    @property
    def well(self) -> bool:
        """Tell whether all was done that there was to do, be it nothing."""
        return not (self.failed or self.late)

    @property
    def changed(self) -> bool:
        """Tell whether anything was observed, shown or condensed."""
        return bool(self.done or self.activated or self.after.revision > self.before.revision)


Progress = Callable[[Gauges], object]


def unheard(gauges: Gauges) -> None:
    """Tell nobody how far it is."""


@dataclass
class Operation:
    """Hold what one operation has run so far, how long it may wait, and who is told."""

    thread_id: UUID
    resolve: Resolve
    wait_seconds: float
    progress: Progress = unheard
    cycles: list[UUID] = field(default_factory=list)
    activated: int = 0
    late: bool = False
    why: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._until = monotonic() + self.wait_seconds

    async def wait(self) -> bool:
        """Wait a moment for what is under way; return False when it has been long enough."""
        if monotonic() >= self._until:
            self.late = True
            return False
        await asyncio.sleep(POLL_SECONDS)
        return True

    async def rounds(
        self, decide: Decide, *, at_once: bool, then: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Claim and run what is decided, and do what follows, round after round, until none is."""
        for _ in range(MOST_ROUNDS):
            claims = await self._claimed(decide, at_once)
            if not claims.claimed:
                return
            self.cycles += _cycles_of(claims)
            went_well = await run_all(claims, self.resolve)
            if then is not None:
                await then()
            self.progress(await sync_to_async(gauges)(self.thread_id))
            if not went_well:
                return

    async def cover(self) -> None:
        """Observe and show all that can be covered.

        Of a shared record everything is shown together, in one revision for all its threads.
        """
        shared = await self.shared()
        decide: Decide = everything_ahead if shared else everything_at_once
        await self.rounds(decide, at_once=not shared)
        await self.activate()

    async def shared(self) -> bool:
        """Tell whether the memory is that of a whole resource. Raises Refused."""
        view = await sync_to_async(remembered)(self.thread_id)
        return view.record.thread_id is None

    async def _claimed(self, decide: Decide, at_once: bool) -> Claims:
        while True:
            claims, busy = await sync_to_async(_claim)(self.thread_id, decide, at_once)
            if claims.claimed or not busy:
                return claims
            if not await self.wait():
                self.why.append("Another observation is still under way: try again later.")
                return claims

    async def activate(self, *, down_to: int = 0, keep: UUID | None = None) -> None:
        """Show what is buffered, oldest first, until so many tokens are raw."""
        self.activated += await sync_to_async(_activate)(self.thread_id, down_to, keep)

    async def reflect(self, focus: str) -> None:
        """Condense all lines that may be."""
        while True:
            try:
                claimed = await sync_to_async(_claim_reflection)(self.thread_id, focus)
                break
            except LaneTaken:
                if not await self.wait():
                    self.why.append("Another reflection is still under way: try again later.")
                    return
        if claimed is None:
            self.why.append(NOTHING_LOOSE)
            return
        self.cycles.append(claimed.cycle.pk)
        await reflect.run(claimed, resolve=self.resolve)

    async def settle(self) -> None:
        """Wait for all cycles of the record that are under way."""
        while await sync_to_async(_under_way)(self.thread_id):
            if not await self.wait():
                self.why.append("A cycle is still under way and was not waited for any longer.")
                return

    def outcome(self, before: Gauges, nothing: str) -> Outcome:
        """Return what was done; ``nothing`` says why when it was nothing at all."""
        cycles = list(Cycle.objects.filter(pk__in=self.cycles))
        bad = [cycle for cycle in cycles if cycle.status in Cycle.FRUITLESS]
        done = sum(cycle.status == Cycle.Status.DONE for cycle in cycles)
        why = [*self.why, *(cycle.error for cycle in bad)]
        if not (why or done or self.activated):
            why = [nothing]
        after = gauges(self.thread_id)
        return Outcome(
            before=before,
            after=after,
            done=done,
            failed=len(bad),
            activated=self.activated,
            late=self.late,
            why=" ".join(dict.fromkeys(why)),
        )


async def observe_now(
    thread_id: UUID, *, resolve: Resolve = resolve_model, wait_seconds: float = WAIT_SECONDS
) -> Outcome:
    """Show what is buffered, then observe and show everything else that can be covered.

    Raises Refused for a thread that does not remember.
    """
    operation = Operation(thread_id, resolve, wait_seconds)
    before = await sync_to_async(gauges)(thread_id)
    await operation.activate()
    await operation.cover()
    return await sync_to_async(operation.outcome)(before, NOTHING_RAW)


async def buffer_now(
    thread_id: UUID, *, resolve: Resolve = resolve_model, wait_seconds: float = WAIT_SECONDS
) -> Outcome:
    """Observe everything that can be covered ahead of time; nothing of it is shown yet.

    Raises Refused for a thread that does not remember.
    """
    operation = Operation(thread_id, resolve, wait_seconds)
    before = await sync_to_async(gauges)(thread_id)
    await operation.rounds(everything_ahead, at_once=False)
    return await sync_to_async(operation.outcome)(before, NOTHING_RAW)


async def activate_now(thread_id: UUID) -> Outcome:
    """Show everything that is buffered; no model is asked.

    Raises Refused for a thread that does not remember.
    """
    operation = Operation(thread_id, resolve_model, 0)
    before = await sync_to_async(gauges)(thread_id)
    await operation.activate()
    return await sync_to_async(operation.outcome)(before, "Nothing is buffered.")


async def reflect_now(
    thread_id: UUID,
    *,
    focus: str = "",
    resolve: Resolve = resolve_model,
    wait_seconds: float = WAIT_SECONDS,
) -> Outcome:
    """Condense all visible lines but notes and pins, minding ``focus``.

    A reflection that waits is given up for it. When it fails all stays as it was. Raises
    Refused for a thread that does not remember.
    """
    operation = Operation(thread_id, resolve, wait_seconds)
    before = await sync_to_async(gauges)(thread_id)
    await operation.reflect(focus)
    return await sync_to_async(operation.outcome)(before, "")


NOTHING_LOOSE = "There is nothing to condense: no lines are visible but notes and pins."
NOTHING_RAW = "There is nothing to observe: no completed step is raw."


def everything_at_once(view: View) -> Sequence[Observe]:
    """Return all that can be observed, a call's worth of each thread."""
    return on_demand.observe_all(view.snapshot(), limit=call_size(view))


def everything_ahead(view: View) -> Sequence[Buffer]:
    """Return all that can be buffered, a call's worth of each thread."""
    return on_demand.ahead(everything_at_once(view))


def call_size(view: View) -> int:
    """Return how many tokens one call of the Observer should read at most."""
    options = view.options
    return min(options.thresholds().observe, options.max_tokens_per_batch)


def remembered(thread_id: UUID, *, lanes: bool = False) -> View:
    """Return a thread's memory. Raises Refused when it has none, or was erased meanwhile."""
    try:
        view = look(thread_id, lanes=lanes)
    except Thread.DoesNotExist:
        raise Refused("There is no such conversation.") from None
    if view is None:
        raise Refused("This conversation does not remember: it has no memory to work on.")
    return view


def gauges(thread_id: UUID) -> Gauges:
    """Return what the record of a thread has now. Raises Refused."""
    view = remembered(thread_id)
    snapshot = view.snapshot()
    buffered = sum(chunk.message_tokens for chunk in snapshot.chunks)
    return Gauges(view.revision, snapshot.pending_tokens, buffered, view.tokens)


def _claim(thread_id: UUID, decide: Decide, at_once: bool) -> tuple[Claims, bool]:
    """Claim what is decided; tell besides whether it is only that others are at it."""
    with transaction.atomic():
        view = remembered(thread_id, lanes=True)
        decisions = decide(view)
        claimed = claims_of(view, decisions, waiting=at_once, trigger=on_demand.MANUAL, asked=True)
        busy = bool(decisions) and not claimed and _under_way(thread_id, reflections=False)
        return Claims(claimed, at_once=view.options.parallel_calls), busy


def _cycles_of(claims: Claims) -> Iterator[UUID]:
    for claimed in claims.claimed:
        if isinstance(claimed, Claimed):
            yield from (share.cycle.pk for share in claimed.shares)


def _under_way(thread_id: UUID, *, reflections: bool = True) -> bool:
    record = remembered(thread_id).record
    running = Cycle.objects.running().filter(record=record)
    if not reflections:
        running = running.exclude(lane=REFLECTOR_LANE)
    lapsed = Cycle.objects.lapsed().filter(record=record)
    return running.exclude(pk__in=lapsed.values("pk")).exists()


def _activate(thread_id: UUID, down_to: int, keep: UUID | None) -> int:
    """Show chunks; return how many. Somebody who comes first is given way a few times."""
    for _ in range(MOST_TRIES):
        view = remembered(thread_id)
        due = on_demand.activate_all(view.snapshot(), down_to=down_to, keep=keep)
        if due is None:
            return 0
        try:
            with transaction.atomic():
                activate(view, due)
                dispatch(thread_id)
        except (CursorMoved, RecordMoved):
            continue
        return len(due.chunks)
    return 0


def _claim_reflection(thread_id: UUID, focus: str) -> reflect.Claimed | None:
    with transaction.atomic():
        view = remembered(thread_id, lanes=True)
        claimed = reflect.claim_now(view, focus=focus)
        if claimed is not None:
            # Two reflections of the same lines cannot both take their place.
            give_up_reflections(view.record.pk)
        return claimed


def show_reflection(thread_id: UUID) -> int | None:
    """Let the reflection that waits, if one does, take its place; return the revision."""
    for _ in range(MOST_TRIES):
        view = remembered(thread_id)
        if view.reflection is None:
            return None
        try:
            return activate_reflection(view, trigger=on_demand.MANUAL)
        except (CursorMoved, RecordMoved):
            continue
    return None
