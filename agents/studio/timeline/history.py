"""Read what the lanes and the curves of a timeline are drawn from, in a few statements."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from django.db.models import Sum

from agents.studio.timeline.curves import Arrived, Point, Shown, levels
from agents.studio.timeline.events import Filters, Scope
from memory.models import Cycle, Message, Observation, Revision, Thread

MOST_MESSAGES = 5_000
MOST_REVISIONS = 3_000
MOST_BARS = 600
#: Clocks of a database and of a process may differ by so much.
CLOCKS = timedelta(minutes=1)


class TurnSpan(NamedTuple):
    """Hold when a turn ran and which messages it stored."""

    key: UUID
    thread: UUID
    at: datetime
    ended: datetime | None
    status: str
    first: int | None
    last: int | None


class CycleSpan(NamedTuple):
    """Hold when a cycle ran."""

    key: UUID
    kind: str
    at: datetime
    ended: datetime | None
    status: str


class Step(NamedTuple):
    """Hold a revision: one step of travelling in time."""

    number: int
    cause: str
    at: datetime
    after: int
    author: str | None


@dataclass(frozen=True)
class History:
    """Read one timeline's history; everything is read once and only when it is drawn."""

    scope: Scope
    thread: Thread

    @cached_property
    def turns(self) -> list[TurnSpan]:
        """Return the newest turns, oldest first."""
        rows = self.scope.turns(Filters()).order_by("-at")[:MOST_BARS]
        fields = ("pk", "thread", "at", "finished_at", "status", "first_position", "last_position")
        return [TurnSpan(*row) for row in reversed(rows.values_list(*fields))]

    @cached_property
    def cycles(self) -> list[CycleSpan]:
        """Return the newest cycles, oldest first."""
        rows = Cycle.objects.filter(record=self.scope.record).order_by("-started_at")[:MOST_BARS]
        fields = ("pk", "kind", "started_at", "finished_at", "status")
        return [CycleSpan(*row) for row in reversed(rows.values_list(*fields))]

    @cached_property
    def steps(self) -> list[Step]:
        """Return the newest revisions, oldest first."""
        rows = Revision.objects.filter(record=self.scope.record).order_by("-number")
        fields = ("number", "cause", "created_at", "tokens_after", "author__username")
        return [Step(*row) for row in reversed(rows.values_list(*fields)[:MOST_REVISIONS])]

    @cached_property
    def covered(self) -> dict[int, int]:
        """Return the message tokens that each revision covered."""
        if self.scope.record is None:
            return {}
        rows = Observation.objects.filter(
            record=self.scope.record,
            kind=Observation.Kind.OBSERVATION,
            since__isnull=False,
            thread__in=self.scope.threads,
        )
        found = rows.order_by().values_list("since").annotate(total=Sum("message_tokens"))
        return {since: total for since, total in found if since is not None}

    @cached_property
    def is_cut(self) -> bool:
        """Tell whether there are more messages than are drawn one by one."""
        return bool(self._stored and self._older)

    @cached_property
    def _stored(self) -> list[tuple[UUID, int, datetime, int]]:
        rows = Message.objects.filter(thread__in=self.scope.threads).order_by("-pk")
        fields = ("thread", "position", "created_at", "tokens")
        return list(reversed(rows.values_list(*fields)[:MOST_MESSAGES]))

    @cached_property
    def _older(self) -> int:
        if len(self._stored) < MOST_MESSAGES:
            return 0
        rows = Message.objects.filter(thread__in=self.scope.threads)
        total = rows.aggregate(total=Sum("tokens"))["total"] or 0
        return int(total) - sum(tokens for *_, tokens in self._stored)

    @cached_property
    def arrivals(self) -> list[Arrived]:
        """Return the messages by when they were stored, the oldest of many as one."""
        clock = _Clock(self.turns, self.thread)
        found = [Arrived(clock.stored(*row[:3]), row[3]) for row in self._stored]
        if self._older and found:
            found.insert(0, Arrived(min(each.at for each in found), self._older))
        return found

    @cached_property
    def points(self) -> list[Point]:
        """Return both curves."""
        return levels(self.arrivals, list(self._shown()))

    def _shown(self) -> Iterator[Shown]:
        known = {step.number for step in self.steps}
        before = sum(tokens for number, tokens in self.covered.items() if number not in known)
        if before and self.scope.record is not None:
            # A fork's memory goes on from a revision of its parent, which is not among its own.
            first = self.steps[0].at if self.steps else self.scope.record.created_at
            yield Shown(first, before, self.steps[0].after if self.steps else 0)
        for step in self.steps:
            yield Shown(step.at, self.covered.get(step.number, 0), step.after)

    def last_stored(self, at: datetime) -> int:
        """Return the position of the thread's last message at a time."""
        clock = _Clock(self.turns, self.thread)
        mine = [row for row in self._stored if row[0] == self.thread.pk]
        return max((row[1] for row in mine if clock.stored(*row[:3]) <= at), default=0)


class _Clock:
    """Tell when a message was stored: a recording that is replayed keeps its own times."""

    def __init__(self, turns: Sequence[TurnSpan], thread: Thread) -> None:
        self._thread = thread
        self._spans: dict[UUID, list[TurnSpan]] = defaultdict(list)
        for turn in sorted(turns, key=lambda turn: turn.first or 0):
            if turn.first is not None:
                self._spans[turn.thread].append(turn)
        self._firsts = {
            thread: [turn.first or 0 for turn in spans] for thread, spans in self._spans.items()
        }

    def stored(self, thread: UUID, position: int, created_at: datetime) -> datetime:
        """Return when a message was stored, as far as its turn tells."""
        at = self._in_turn(thread, position, created_at)
        mine = thread == self._thread.pk
        return max(at, self._thread.created_at) if mine else at

    def _in_turn(self, thread: UUID, position: int, created_at: datetime) -> datetime:
        number = bisect_right(self._firsts.get(thread, []), position) - 1
        if number < 0:
            return created_at
        turn = self._spans[thread][number]
        if turn.at - CLOCKS <= created_at <= (turn.ended or created_at) + CLOCKS:
            return created_at
        is_prompt = position == turn.first
        return turn.at if is_prompt or turn.ended is None else turn.ended
