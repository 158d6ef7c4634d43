"""Draw the lanes and the curves of a timeline on one scale of time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

from agents import words
from agents.gauges import Limits
from agents.studio.timeline.curves import Point, at_time, falls, thinned
from agents.studio.timeline.events import CAUSES, CYCLES, FAILED_CYCLES, FAILED_TURNS, Filters
from agents.studio.timeline.history import CycleSpan, History, TurnSpan
from agents.studio.timeline.scale import Scale
from memory.models import Cycle, Revision

NARROWEST = 0.35
TICKS = 8
LATE = 0.9
NAMES = {
    "turn": ("Actor", "turn"),
    "buffer": ("Buffering", "run"),
    "activate": ("Activation", "activation"),
    "observe": ("Observing", "run"),
    "reflect": ("Reflecting", "run"),
    "edit": ("Edits", "change"),
}


@dataclass(frozen=True)
class Bar:
    """Show one thing that happened; places are percentages. ``at`` is what it is asked for by."""

    x: str
    width: str
    state: str
    title: str
    at: str
    open: bool = False
    point: bool = False


@dataclass(frozen=True)
class Lane:
    """Show everything of one kind."""

    key: str
    name: str
    bars: Sequence[Bar]
    says: str


@dataclass(frozen=True)
class Tick:
    """Name a place on the scale; a late one has no room to its right."""

    x: str
    words: str
    late: bool = False


@dataclass(frozen=True)
class Drawing:
    """Draw a history, as far as its window goes. ``cursor`` is the time travelled to."""

    history: History
    filters: Filters
    zone: ZoneInfo
    now: datetime
    cursor: datetime | None = None

    @cached_property
    def points(self) -> list[Point]:
        """Return the points of both curves in the window, with the levels at its beginning."""
        found = [point for point in self.history.points if self._inside(point.at)]
        if self.filters.since is not None:
            before = at_time(self.history.points, self.filters.since)
            if before is not None:
                found.insert(0, Point(self.filters.since, before.raw, before.remembered))
        return thinned(found)

    @cached_property
    def scale(self) -> Scale:
        """Return where each time stands."""
        times = [point.at for point in self.points]
        for span in self._spans:
            times += [at for at in (span.at, span.ended) if at is not None and self._inside(at)]
        if self._is_open:
            times.append(self.now)
        return Scale(times)

    @property
    def times(self) -> Iterator[datetime]:
        """Yield when anything happened, in the window or not."""
        yield from (point.at for point in self.history.points)
        yield from (step.at for step in self.history.steps)
        for span in self._spans:
            yield from (at for at in (span.at, span.ended) if at is not None)

    @property
    def _is_open(self) -> bool:
        return self.filters.until is None and any(span.ended is None for span in self._spans)

    @property
    def _spans(self) -> list[TurnSpan | CycleSpan]:
        return [*self.history.turns, *self.history.cycles]

    def _inside(self, at: datetime) -> bool:
        since, until = self.filters.since, self.filters.until
        return (since is None or at >= since) and (until is None or at <= until)

    @cached_property
    def lanes(self) -> list[Lane]:
        """Return the lanes, each with a sentence of what is in it."""
        bars: dict[str, list[Bar]] = {key: [] for key in NAMES}
        for key, bar in (*self._turns(), *self._cycles(), *self._steps()):
            bars[key].append(bar)
        return [_lane(key, bars[key]) for key in NAMES]

    def _turns(self) -> Iterator[tuple[str, Bar]]:
        for turn in self.history.turns:
            if self._inside(turn.at):
                state = "failed" if turn.status in FAILED_TURNS else "turn"
                yield (
                    "turn",
                    self._bar(turn.at, turn.ended, state, f"Turn, {turn.status}", str(turn.key)),
                )

    def _cycles(self) -> Iterator[tuple[str, Bar]]:
        for cycle in self.history.cycles:
            if not self._inside(cycle.at):
                continue
            kind = Cycle.Kind(cycle.kind)
            title = f"{kind.label}, {cycle.status}"
            look = _look(cycle.status) or kind.value
            yield CYCLES[kind], self._bar(cycle.at, cycle.ended, look, title, str(cycle.key))

    def _steps(self) -> Iterator[tuple[str, Bar]]:
        for step in self.history.steps:
            cause = Revision.Cause(step.cause)
            if cause == Revision.Cause.OBSERVE or not self._inside(step.at):
                continue
            by = f" by {step.author}" if step.author else ""
            title = f"Revision {step.number}, {cause.value}{by}"
            place = words.percent(self.scale.x(step.at), 1)
            key = CAUSES.get(cause, "edit")
            yield key, Bar(place, "0%", key, title, str(step.number), point=True)

    def _bar(self, at: datetime, ended: datetime | None, state: str, title: str, key: str) -> Bar:
        start, end = self.scale.x(at), self.scale.x(ended or self.now)
        took = f", {words.lasted(ended - at)}" if ended else ", under way"
        return Bar(
            x=words.percent(min(start, 1 - NARROWEST / 100), 1),
            width=words.percent(max(end - start, NARROWEST / 100), 1),
            state=state,
            title=f"{self.clock(at)} {title}{took}",
            at=key,
            open=ended is None,
        )

    def clock(self, at: datetime) -> str:
        """Return a time of day with its seconds, and the date when it is not today."""
        local = at.astimezone(self.zone)
        same = local.date() == self.now.astimezone(self.zone).date()
        return f"{local:%H:%M:%S}" if same else f"{words.day(local)} {local:%H:%M:%S}"

    @cached_property
    def ticks(self) -> list[Tick]:
        """Return the times named below the lanes."""
        found, day = [], None
        for x, at in self.scale.ticks(TICKS):
            local = at.astimezone(self.zone)
            date = f"{local.day} {local:%b} " if local.date() != day else ""
            day = local.date()
            found.append(Tick(words.percent(x, 1), f"{date}{local:%H:%M:%S}", late=x > LATE))
        return found

    @cached_property
    def breaks(self) -> list[Tick]:
        """Return the pauses that are cut short."""
        return [Tick(words.percent(cut.x, 1), _pause(cut.lasted)) for cut in self.scale.breaks]

    @property
    def cursor_x(self) -> str:
        """Return where the time travelled to stands; empty without one."""
        return words.percent(self.scale.x(self.cursor), 1) if self.cursor is not None else ""

    def data(self, limits: Limits) -> str:
        """Return what the browser draws the curves from, as JSON."""
        place = [round(self.scale.x(point.at), 5) for point in self.points]
        whole, end = self.history.points, self.scale.end
        return json.dumps(
            {
                "x": place,
                "messages": [point.raw for point in self.points],
                "observations": [point.remembered for point in self.points],
                "at": [round(point.at.timestamp() * 1000) for point in self.points],
                "end": end and round(end.timestamp() * 1000),
                "whole": [round(each.at.timestamp() * 1000) for each in (*whole[:1], *whole[-1:])],
                "zone": self.zone.key,
                "limits": {"messages": limits.observe, "observations": limits.reflect},
                "cursor": None if self.cursor is None else round(self.scale.x(self.cursor), 5),
            },
            separators=(",", ":"),
        )

    def line(self, curve: str, top: int) -> str:
        """Return a curve as the points of an SVG line, 1000 wide and 100 high: steps."""
        return " ".join(_stairs(self.points, self.scale, curve, top))

    def sentence(self, curve: str, name: str, limit: int) -> str:
        """Return what a curve shows, in words."""
        if not self.points:
            return f"{name}: nothing yet."
        values = [getattr(point, curve) for point in self.points]
        highest = max(range(len(values)), key=values.__getitem__)
        said = (
            f"{name} are {words.tokens(values[-1])} of {words.tokens(limit)} now, at most "
            f"{words.tokens(values[highest])} at {self.clock(self.points[highest].at)}"
        )
        down = falls(self.points, curve)
        if not down:
            return f"{said}; they have only risen."
        last = down[-1]
        times = "once" if len(down) == 1 else f"{len(down)} times"
        return (
            f"{said}; they came down {times}, last at {self.clock(last.at)} from "
            f"{words.tokens(last.before)} to {words.tokens(last.after)}."
        )


def _pause(lasted: timedelta) -> str:
    hours = lasted.total_seconds() / 3600
    if hours < 2:
        return words.lasted(lasted)
    return f"{hours:.0f} h" if hours < 48 else f"{lasted.days} days"


def _stairs(points: Sequence[Point], scale: Scale, curve: str, top: int) -> Iterator[str]:
    before: float | None = None
    for point in points:
        x = 1000 * scale.x(point.at)
        y = 100 - 100 * getattr(point, curve) / top if top else 100.0
        if before is not None:
            yield f"{x:.1f},{before:.1f}"
        yield f"{x:.1f},{y:.1f}"
        before = y
    if before is not None:
        yield f"1000,{before:.1f}"


def _look(status: str) -> str:
    """Return what a cycle without a result looks like; nothing for one that has its kind's look."""
    if status == Cycle.Status.CANCELLED:
        return "cancelled"
    return "failed" if status in FAILED_CYCLES else ""


def _lane(key: str, bars: Iterable[Bar]) -> Lane:
    name, noun = NAMES[key]
    shown = tuple(bars)
    failed = sum(bar.state == "failed" for bar in shown)
    under_way = sum(bar.open for bar in shown)
    says = f"{name}: {len(shown)} {noun}{'' if len(shown) == 1 else 's'}"
    says += f", {failed} failed" if failed else ""
    says += f", {under_way} under way" if under_way else ""
    return Lane(key, name, shown, says)
