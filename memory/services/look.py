"""Read a thread and its memory as of one revision.

The read rule: the record's revision ``n`` is read first, and everything else as of ``n``.
Rows and cursor read one after the other would show a message twice, or not at all, while
another process activates; so the statement that reads the revision reads the cursor too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from memory.config import MemoryOptions, in_force
from memory.engine import values
from memory.engine.lifecycle import Chunk, Snapshot, Tail, Waiting
from memory.models import Line, MemoryRecord, Observation, Thread
from memory.models.state import LaneRow, OtherTail, State, other_tails, read_state

from . import kept
from .kept import Raw


@dataclass(frozen=True)
class Other:
    """Hold the raw messages of another thread of a shared record, and what waits of them."""

    thread: UUID
    title: str
    observed_through: int
    buffered_through: int
    raw: Sequence[Raw]
    buffered: Sequence[Observation]

    @cached_property
    def tail(self) -> Tail:
        """Return the thread as the engine reads it."""
        # Clocks of several processes may differ; within a thread the order is that of coverage.
        written = accumulate((observation.pk.int for observation in self.buffered), max)
        return Tail(
            thread=self.thread,
            pending=tuple(raw.pending for raw in self.raw),
            chunks=tuple(map(_chunk, self.buffered, written)),
        )

    @property
    def label(self) -> str:
        """Return a short name for the thread where models are told of several."""
        return self.thread.hex[-8:]

    @property
    def hints(self) -> values.Hints:
        """Return what is known of the thread from here: its title."""
        return values.Hints(thread_title=self.title)

    def without(self, shown: Collection[UUID]) -> Other:
        """Return the thread once these observations are shown."""
        own = [o for o in self.buffered if o.pk in shown]
        through = max((o.last_position or 0 for o in own), default=self.observed_through)
        return replace(
            self,
            observed_through=through,
            raw=tuple(raw for raw in self.raw if raw.position > through),
            buffered=tuple(o for o in self.buffered if o.pk not in shown),
        )


@dataclass(frozen=True)
class View:
    """Hold a thread and its record as of ``revision``.

    ``raw`` are the messages above ``observed_through``, ``buffered`` the observations that
    wait for activation, ``others`` the other threads of a shared record with raw messages.
    ``memory`` holds the visible lines in order.
    """

    thread: Thread
    record: MemoryRecord
    options: MemoryOptions
    zone: ZoneInfo
    observed_through: int
    buffered_through: int
    hints: values.Hints
    extracted: Mapping[str, Any]
    actor_model: str
    memory: kept.Shown
    raw: Sequence[Raw] = ()
    buffered: Sequence[Observation] = ()
    others: Sequence[Other] = ()
    reflection: Waiting | None = None
    waiting_reflection: UUID | None = None
    observer: LaneRow = field(default_factory=LaneRow)
    reflector: LaneRow = field(default_factory=LaneRow)

    @property
    def revision(self) -> int:
        """Return the revision everything here is as of."""
        return self.record.revision

    @property
    def lines(self) -> Sequence[Line]:
        """Return the visible lines in order."""
        return self.memory.lines

    @property
    def tokens(self) -> int:
        """Return the tokens of all visible lines as they are sent, with the headers of days."""
        return self.memory.tokens(self.zone)

    @property
    def tails(self) -> Sequence[Other]:
        """Return this thread and the others alike, this one first."""
        thread = self.thread
        own = Other(
            thread.pk,
            thread.title,
            self.observed_through,
            self.buffered_through,
            self.raw,
            self.buffered,
        )
        return (own, *self.others)

    def snapshot(self, **state: Any) -> Snapshot:
        """Return what the engine decides on; ``state`` are its flags."""
        return Snapshot(
            tails=tuple(tail.tail for tail in self.tails),
            rows=self.memory.rows,
            observation_tokens=self.tokens,
            **{"reflection": self.reflection, **state},
        )

    def with_raw(self, raws: Sequence[Raw]) -> View:
        """Return the view with messages appended to the thread since it was taken."""
        return replace(self, raw=(*self.raw, *raws))


def record_of(thread: Thread) -> MemoryRecord:
    """Return the open record the thread's memory is in, made now if there is none."""
    record = read(thread.pk).record
    assert record is not None
    return record


def look(thread_id: UUID, *, lanes: bool = False, keep: bool = True) -> View | None:
    """Return the thread and its memory now; None when the thread does not remember.

    ``lanes`` reads too what the thread's Observer and the record's Reflector are at; ``keep``
    is false in a transaction that has changed any of it. Raises Thread.DoesNotExist.
    """
    while True:
        state = read(thread_id, lanes=lanes)
        if not state.thread.remembers:
            return None
        view = view_of(state, keep=keep)
        if view is not None:
            return view


def read(thread_id: UUID, *, lanes: bool = False) -> State:
    """Return a thread's state; a thread that remembers has a record in it."""
    state = read_state(thread_id, lanes=lanes)
    if not state.thread.remembers or _fits(state):
        return state
    _make_record(state.thread, scope_of(state))
    return read_state(thread_id, lanes=lanes)


def scope_of(state: State) -> str:
    """Return whose memory the thread's is to be: its own, or all of its resource's."""
    thread = state.thread
    return thread.resource.scope or options_of(thread.agent, state.of_agent, "{}").scope


def _fits(state: State) -> bool:
    # A record of the thread's own stays in use until its scope is changed.
    record = state.record
    return record is not None and (record.thread_id is not None or scope_of(state) == "resource")


def _make_record(thread: Thread, scope: str) -> None:
    own = thread if scope == MemoryRecord.Scope.THREAD else None
    try:
        with transaction.atomic():
            MemoryRecord.objects.create(resource_id=thread.resource_id, thread=own, scope=scope)
    except IntegrityError:
        pass  # Another process made it first; that one is as good.


def look_with(view: View, stored: Sequence[Raw]) -> View:
    """Return a view together with what this transaction has stored in its thread since.

    Where somebody else stored messages in between, all is read again.
    """
    if not stored or stored[0].position == view.thread.last_position + 1:
        return view.with_raw(stored)
    return look(view.thread.pk, keep=False) or view.with_raw(stored)


def view_of(state: State, *, keep: bool = True) -> View | None:
    """Return the memory of a thread that remembers; None when it moved on while it was read."""
    record, thread = state.record, state.thread
    assert record is not None
    others: Sequence[Other] = ()
    if record.thread_id is None:
        found = other_tails(record, thread.pk)
        if found is None:
            return None
        others = _others(record, found, keep)
    through = state.observed_through
    return View(
        thread=thread,
        record=record,
        options=options_in(state),
        zone=ZoneInfo(thread.resource.time_zone),
        observed_through=through,
        buffered_through=state.buffered_through,
        hints=values.Hints(state.current_task, state.suggested_response, thread.title),
        extracted=json.loads(state.extracted) or {},
        actor_model=state.actor_model,
        memory=shown_at(record, keep=keep),
        raw=_raw(record, thread.pk, through, thread.last_position, keep),
        buffered=_waiting(record, thread.pk, through, state.written_through, keep),
        others=others,
        reflection=None if state.reflection is None else Waiting(*state.reflection),
        waiting_reflection=state.waiting_reflection,
        observer=state.observer,
        reflector=state.reflector,
    )


def _others(record: MemoryRecord, tails: Sequence[OtherTail], keep: bool) -> list[Other]:
    """Return other threads; of a hundred, all but the one that spoke last are as they were."""
    known = [_known(record, tail) for tail in tails]
    if keep:
        _read_ahead(record, [t for t, other in zip(tails, known, strict=True) if other is None])
    return [other or _other(record, tail, keep) for tail, other in zip(tails, known, strict=True)]


_as_they_were: kept.Recent[tuple[int, OtherTail, Other]] = kept.recent(
    kept.MOST_TOKENS, lambda value: kept.size_of(value[2].raw)
)


def _known(record: MemoryRecord, tail: OtherTail) -> Other | None:
    found = _as_they_were.get((record.pk, tail.thread))
    return found[2] if found is not None and found[:2] == (record.epoch, tail) else None


def _other(record: MemoryRecord, tail: OtherTail, keep: bool) -> Other:
    other = Other(
        thread=tail.thread,
        title=tail.title,
        observed_through=tail.observed_through,
        buffered_through=tail.buffered_through,
        raw=_raw(record, tail.thread, tail.observed_through, tail.last_position, keep),
        buffered=_waiting(record, tail.thread, tail.observed_through, tail.written_through, keep),
    )
    if keep:
        _as_they_were.put((record.pk, tail.thread), (record.epoch, tail, other))
    return other


def _read_ahead(record: MemoryRecord, tails: Sequence[OtherTail]) -> None:
    """Have what waits in threads at hand, in few statements however many they are."""
    if not tails:
        return
    epoch = (record.pk, record.epoch)
    kept.messages_ahead(
        [(tail.thread, tail.observed_through, tail.last_position) for tail in tails], epoch=epoch
    )
    waiting = Q(since__isnull=True) | Q(since__gt=record.revision)
    rows = Observation.objects.filter(
        waiting, record=record, kind=Observation.Kind.OBSERVATION
    ).order_by("thread_id", "first_position")
    kept.buffered_ahead(
        record.pk,
        [(t.thread, (record.epoch, t.observed_through, t.written_through)) for t in tails],
        lambda threads: rows.filter(thread__in=threads),
    )


def _raw(
    record: MemoryRecord, thread_id: UUID, after: int, through: int, keep: bool
) -> Sequence[Raw]:
    return kept.messages(
        thread_id, epoch=(record.pk, record.epoch), after=after, through=through, keep=keep
    )


def _waiting(
    record: MemoryRecord, thread_id: UUID, observed: int, buffered: int, keep: bool
) -> Sequence[Observation]:
    return kept.buffered(
        record.pk,
        thread_id,
        place=(record.epoch, observed, buffered),
        read=lambda: list(
            Observation.objects.filter(
                record=record,
                thread=thread_id,
                kind=Observation.Kind.OBSERVATION,
                first_position__gt=observed,
                last_position__lte=buffered,
            ).order_by("first_position")
        ),
        keep=keep,
    )


def shown_at(record: MemoryRecord, *, keep: bool = True) -> kept.Shown:
    """Return the lines visible at the revision the record was read at."""
    return kept.shown(
        record.pk,
        revision=record.revision,
        epoch=record.epoch,
        read=lambda: visible_lines(record.pk, record.revision),
        keep=keep,
    )


def visible_lines(record_id: UUID, revision: int) -> list[Line]:
    """Return the lines the Actor sees at a revision, in order."""
    lines = Line.objects.as_of(record_id, revision).in_order()
    return list(
        lines.annotate(of_kind=F("observation__kind"), of_thread=F("observation__thread_id"))
    )


def options_in(state: State) -> MemoryOptions:
    """Return the options in force for a thread, as of its state."""
    overrides = state.record.config if state.record is not None else {}
    return options_of(state.thread.agent, state.of_agent, json.dumps(overrides))


@lru_cache(maxsize=1024)
def options_of(agent: str, of_agent: str, overrides: str) -> MemoryOptions:
    """Return the options in force, from the agent's and the record's as JSON."""
    return in_force(agent, json.loads(of_agent) or {}, json.loads(overrides))


def line_value(line: Line) -> values.Line:
    """Return a stored line as the engine reads it."""
    return values.Line(
        id=line.pk,
        observation=line.observation_id,
        kind=values.LineKind(line.kind),
        text=line.text,
        tokens=line.tokens,
        said_at=line.said_at,
        first_position=line.first_position,
        last_position=line.last_position,
        pinned=line.pinned,
    )


def _chunk(observation: Observation, written: int) -> Chunk:
    assert observation.first_position is not None
    assert observation.last_position is not None
    return Chunk(
        id=observation.pk,
        first_position=observation.first_position,
        last_position=observation.last_position,
        message_tokens=observation.message_tokens,
        tokens=observation.tokens,
        thread=observation.thread_id,
        written=written,
    )
