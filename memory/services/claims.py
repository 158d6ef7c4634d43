"""Claim what there is to observe: ranges of one thread, or of several in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.engine import values
from memory.engine.lifecycle import Buffer, Decision, Observe
from memory.models import Cycle
from memory.models.cycle import observer_lane
from memory.models.ids import new_id

from .cycles import Lane, LaneTaken, lane_of, observer_lanes, open_cycles
from .look import Other, View, look
from .material import Material, material_of
from .prepare import due as due_in

FALLBACK = "fallback"


@dataclass(frozen=True)
class Share:
    """Hold what a call is for one thread: its cycle, and where its cursor stood.

    ``after`` is the position the thread was buffered through when it was claimed.
    """

    cycle: Cycle
    after: int


@dataclass(frozen=True)
class Claimed:
    """Hold claimed cycles with the frozen material and request they share."""

    shares: tuple[Share, ...]
    material: Material
    request: values.ObserverRequest
    fallback: bool

    @property
    def cycle(self) -> Cycle:
        """Return the first cycle, of most calls the only one."""
        return self.shares[0].cycle

    @property
    def zone(self) -> tzinfo:
        """Return the time zone the user lives in."""
        return self.material.zone


def numbers_of(request: values.ObserverRequest, section: int) -> Mapping[int, int]:
    """Return what the numbers printed for one thread of a request mean."""
    return request.sections[section].numbers if request.sections else request.numbers


@dataclass(frozen=True)
class _Due:
    """Hold one thread's range that may be claimed, and what its lane says."""

    tail: Other
    decision: Buffer | Observe
    lane: Lane


def claim(thread_id: UUID, *, waiting: bool = False) -> Claimed | None:
    """Claim the observation that is due, if any and if nobody is at it.

    ``waiting`` claims what a turn waits for at the ceiling, else only what is done ahead. One
    call is claimed, though several threads may share it.
    """
    with transaction.atomic():
        view = look(thread_id, lanes=True)
        if view is None:
            return None
        return next(iter(claims_of(view, due_in(view), waiting=waiting, most=1)), None)


def claims_of(
    view: View,
    decisions: Sequence[Decision],
    *,
    waiting: bool = False,
    trigger: str = "",
    asked: bool = False,
    most: int | None = None,
) -> Sequence[Claimed]:
    """Claim what is due in a view taken with its lanes in the same transaction.

    Threads share a call as far as ``max_tokens_per_batch`` allows; at most so many calls are
    claimed. ``asked`` tells that a person wants it: then no lane rests after a failure.
    """
    wanted = Observe if waiting else Buffer
    free = _free(view, [due for due in decisions if isinstance(due, wanted)], asked=asked)
    batches = _batches(free, view.options.max_tokens_per_batch)[:most]
    claimed = [_open(view, batch, trigger) for batch in batches]
    return [each for each in claimed if each is not None]


def _free(view: View, decisions: Sequence[Buffer | Observe], *, asked: bool) -> list[_Due]:
    tails = {tail.thread: tail for tail in view.tails}
    # With the cursor past a range already, the commit could only be given up.
    ahead = [d for d in decisions if d.first_position > tails[_thread(d)].buffered_through]
    lanes = _lanes(view, [_thread(due) for due in ahead])
    found = [_Due(tails[_thread(due)], due, lanes[_thread(due)]) for due in ahead]
    if asked:
        found = [replace(d, lane=replace(d.lane, resting=False, failures=0)) for d in found]
    return [due for due in found if due.lane.open]


def _thread(due: Buffer | Observe) -> UUID:
    assert isinstance(due.thread, UUID)
    return due.thread


def _lanes(view: View, threads: Sequence[UUID]) -> Mapping[UUID, Lane]:
    """Return what the Observers of threads are at; that of the view's own is known already."""
    others = [thread for thread in threads if thread != view.thread.pk]
    return {
        view.thread.pk: lane_of(view.observer),
        **(observer_lanes(view.record.pk, others) if others else {}),
    }


def _batches(due: Sequence[_Due], most: int) -> list[list[_Due]]:
    """Put ranges together up to so many tokens; one that failed before is asked for alone."""
    batches: list[list[_Due]] = []
    room = 0
    for one in due:
        alone = one.lane.failures > 0
        if not batches or alone or one.decision.tokens > room:
            batches.append([])
            room = most
        batches[-1].append(one)
        room = 0 if alone else room - one.decision.tokens
    return batches


def _open(view: View, batch: Sequence[_Due], trigger: str) -> Claimed | None:
    """Claim the lanes of a batch; a lane that another holds costs all of it one try."""
    ranges = [(d.tail, d.decision.first_position, d.decision.last_position) for d in batch]
    material = material_of(view, ranges)
    request = material.request()
    text, call = request_text(request), new_id()
    try:
        cycles = open_cycles(
            view,
            {observer_lane(d.tail.thread): _fields(view, d, trigger, call) for d in batch},
            request=text,
            lapsed=[observer_lane(d.tail.thread) for d in batch if d.lane.lapsed],
        )
    except LaneTaken:
        return None
    shares = zip(cycles, (due.tail.buffered_through for due in batch), strict=True)
    return Claimed(
        tuple(Share(cycle, after) for cycle, after in shares),
        material,
        request,
        fallback=batch[0].lane.fallback,
    )


def _fields(view: View, due: _Due, trigger: str, call: UUID) -> dict[str, Any]:
    at_once = isinstance(due.decision, Observe)
    return {
        "thread_id": due.tail.thread,
        "call": call,
        "kind": Cycle.Kind.OBSERVE if at_once else Cycle.Kind.BUFFER,
        "trigger": FALLBACK if due.lane.fallback else trigger or due.decision.trigger,
        "first_position": due.decision.first_position,
        "last_position": due.decision.last_position,
        "message_tokens": due.decision.tokens,
        "observation_tokens": view.tokens,
        "attempt": due.lane.failures + 1,
    }


def request_text(request: values.ObserverRequest | values.ReflectorRequest) -> str:
    """Return a request as the one text it is kept as."""
    return "\n\n".join((request.instructions, *request.prompt))
