"""Look at a memory as it was at a revision, and say what a fork from there would copy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Max, Q, Sum

from agents import words
from agents.gauges import Bar, Gauge, Limits
from agents.lines import LineShown, line_shown
from agents.models import Turn
from agents.studio.timeline.curves import Point, at_time
from agents.studio.timeline.history import History
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Revision
from memory.services.fork import cuts
from memory.services.sizes import size_of


class NoSuchTime(LookupError):
    """Tell that a timeline has no such revision, cycle or turn."""


@dataclass(frozen=True)
class Day:
    """Show the lines of one date; one date can come twice, since memory has its own order."""

    name: str
    lines: tuple[LineShown, ...]


@dataclass(frozen=True)
class Boundary:
    """Hold what a fork from a revision copies and what it leaves behind."""

    position: int
    left: int
    observed: bool


@dataclass(frozen=True)
class Travel:
    """Show a timeline as of one revision."""

    number: int
    at: datetime
    cause: str
    key: str
    history: History
    record: MemoryRecord
    limits: Limits
    zone: ZoneInfo

    @cached_property
    def lines(self) -> list[Line]:
        """Return the lines the agent saw then, in order."""
        lines = Line.objects.as_of(self.record.pk, self.number).in_order()
        return list(lines.select_related("observation__thread"))

    @cached_property
    def tokens(self) -> int:
        """Return the tokens of all lines visible then."""
        return size_of(self.lines, self.zone)

    @property
    def tokens_words(self) -> str:
        """Return the tokens of all lines visible then, in words."""
        return words.tokens(self.tokens)

    @cached_property
    def days(self) -> list[Day]:
        """Return the lines visible then, by date; one without a time belongs to the one before."""
        date, dated = "", []
        for line in self.lines:
            shown = line_shown(line, self.zone)
            date = shown.at[:10] or date
            dated.append((date, shown))
        return [
            Day(_day(date), tuple(line for _, line in of_day))
            for date, of_day in groupby(dated, key=itemgetter(0))
        ]

    @cached_property
    def level(self) -> Point:
        """Return how full both windows were."""
        found = at_time(self.history.points, self.at)
        return found or Point(self.at, 0, self.tokens)

    @cached_property
    def buffered(self) -> int:
        """Return the message tokens that were observed then and not shown yet."""
        rows = Observation.objects.filter(
            Q(since__isnull=True) | Q(since__gt=self.number),
            record=self.record,
            kind=Observation.Kind.OBSERVATION,
            cycle__finished_at__lte=self.at,
        )
        return int(rows.aggregate(total=Sum("message_tokens"))["total"] or 0)

    @cached_property
    def gauges(self) -> list[Gauge]:
        """Return both gauges as they stood."""
        raw, lines = self.level.raw, self.tokens
        ahead = min(self.buffered, raw)
        top = max(raw, self.limits.ceiling)
        bars = [
            Bar("ahead", "0%", words.percent(ahead, top)),
            Bar("live", words.percent(ahead, top), words.percent(raw - ahead, top)),
        ]
        note = f"{words.tokens(ahead)} of them buffered" if ahead else "none of them buffered"
        kept = [Bar("kept", "0%", words.percent(lines, max(lines, self.limits.reflect_ceiling)))]
        return [
            _gauge("then-messages", "Messages", raw, self.limits.observe, top, bars, note),
            _gauge(
                "then-observations",
                "Observations",
                lines,
                self.limits.reflect,
                max(lines, self.limits.reflect_ceiling),
                kept,
                f"{len(self.lines)} line{'' if len(self.lines) == 1 else 's'} visible",
            ),
        ]

    @cached_property
    def boundary(self) -> Boundary:
        """Return where a fork from here would begin."""
        thread = self.history.thread
        covering = Observation.objects.covering(self.record.pk, self.number).filter(thread=thread)
        through = covering.aggregate(last=Max("last_position"))["last"]
        position = through or self.history.last_stored(self.at)
        left = Message.objects.above(thread.pk, position).count()
        return Boundary(position, left, bool(through))

    def place(self) -> int:
        """Return the position to fork at: the last step that ends by the boundary."""
        legal = [cut for cut in cuts(self.history.thread.pk) if cut <= self.boundary.position]
        return max(legal, default=0)


def _day(date: str) -> str:
    return words.day(datetime.fromisoformat(date)) if date else "Undated"


def _gauge(
    key: str, name: str, value: int, limit: int, top: int, bars: list[Bar], caption: str
) -> Gauge:
    return Gauge(
        key=key,
        name=name,
        value=value,
        top=top,
        label=f"{words.tokens(value)} / {words.tokens(limit)}",
        exact=f"{value} of {limit} tokens",
        spoken=f"{words.spoken(value)} of {words.spoken(limit)} tokens then",
        caption=caption,
        bars=tuple(bars),
        ticks=(),
        limit=words.percent(limit, top),
    )


@dataclass(frozen=True)
class Moment:
    """Name a moment of a timeline: the revision then, its time, and the row it was asked by."""

    number: int
    at: datetime
    cause: str
    key: str


def moment_of(asked: str, history: History) -> Moment:
    """Return the moment a revision, cycle or turn stands for. Raises NoSuchTime."""
    record = history.scope.record
    if record is None:
        raise NoSuchTime
    if asked.isascii() and asked.isdigit():
        return _at_revision(record, int(asked[:18]))
    try:
        key = UUID(asked)
    except ValueError:
        raise NoSuchTime from None
    return _at_cycle(record, key) or _at_turn(record, key, history)


def _at_revision(record: MemoryRecord, number: int) -> Moment:
    if number > record.revision:
        raise NoSuchTime
    found = Revision.objects.filter(record=record, number__lte=number).order_by("-number").first()
    if found is None:
        return Moment(number, record.created_at, "before anything", "")
    return Moment(number, found.created_at, found.cause, str(found.pk))


def _at_cycle(record: MemoryRecord, key: UUID) -> Moment | None:
    cycle = Cycle.objects.filter(record=record, pk=key).first()
    if cycle is None:
        return None
    made = Revision.objects.filter(record=record, cycle=cycle).order_by("number").first()
    if made is not None:
        return Moment(made.number, made.created_at, made.cause, str(cycle.pk))
    at = cycle.finished_at or cycle.started_at
    return Moment(_latest(record, at), at, cycle.kind, str(cycle.pk))


def _at_turn(record: MemoryRecord, key: UUID, history: History) -> Moment:
    turn = Turn.objects.filter(thread__in=history.scope.threads, pk=key).first()
    if turn is None:
        raise NoSuchTime
    at = turn.finished_at or turn.started_at or turn.created_at
    return Moment(_latest(record, at), at, f"turn {turn.number}", str(turn.pk))


def _latest(record: MemoryRecord, at: datetime) -> int:
    found = Revision.objects.filter(record=record, created_at__lte=at).order_by("-number")
    return found.values_list("number", flat=True).first() or 0
