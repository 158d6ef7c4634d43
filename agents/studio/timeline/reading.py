"""Read what the timeline of a thread shows: table, lanes, curves, and the time travelled to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from agents import words
from agents.gauges import Limits
from agents.page import Scene
from agents.studio.timeline.drawing import Drawing
from agents.studio.timeline.events import (
    KINDS,
    PER_PAGE,
    Filters,
    Key,
    Scope,
    plain,
    read,
    threads_of,
)
from agents.studio.timeline.history import History, Step
from agents.studio.timeline.rows import Row, Writer
from agents.studio.timeline.travel import Moment, Travel, moment_of
from agents.studio.timeline.window import windows
from memory.models import MemoryRecord, Thread

MOST_STEPS = 500
SPEEDS = ("0.5", "1", "2", "4", "8")
#: The ways to another window, each with its key.
WINDOWS = {"earlier": "<", "later": ">", "narrower": "+", "wider": "-", "all": "0"}


class Timeline:
    """Read a timeline for its page; each region reads only what it shows."""

    def __init__(
        self,
        thread: Thread,
        now: datetime,
        *,
        filters: Filters,
        at: str = "",
        page: int | None = None,
        query: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.thread = thread
        self.now = now
        self.filters = filters
        self.asked_at = at
        self.asked_page = page
        self.query = query
        self.scene = Scene(thread.pk, now)

    @property
    def record(self) -> MemoryRecord | None:
        """Return the record the thread's memory is in; None before anything was remembered."""
        return self.scene.record

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone of the resource."""
        return self.scene.zone

    @cached_property
    def limits(self) -> Limits:
        """Return the thresholds in force now."""
        return self.scene.options.thresholds().given(self.scene.line_tokens)

    @cached_property
    def threads(self) -> list[Thread]:
        """Return the threads whose turns are shown, this one first."""
        return threads_of(self.record, self.thread)

    @cached_property
    def history(self) -> History:
        """Return the history of the record and the threads that share it."""
        scope = Scope(self.record, [thread.pk for thread in self.threads])
        return History(scope, self.thread)

    @cached_property
    def moment(self) -> Moment | None:
        """Return the moment travelled to. Raises NoSuchTime."""
        return moment_of(self.asked_at, self.history) if self.asked_at else None

    @cached_property
    def travel(self) -> Travel | None:
        """Return the past that is shown, if any is."""
        if self.moment is None or self.record is None:
            return None
        moment = self.moment
        return Travel(
            moment.number,
            moment.at,
            moment.cause,
            moment.key,
            self.history,
            self.record,
            self.limits,
            self.zone,
        )

    @cached_property
    def drawing(self) -> Drawing:
        """Return the lanes and curves."""
        cursor = self.moment.at if self.moment else None
        return Drawing(self.history, self.filters, self.zone, self.now, cursor)

    # ---- the table

    @cached_property
    def total(self) -> int:
        """Return how many events there are."""
        return self.history.scope.count(self.filters)

    @cached_property
    def page(self) -> int:
        """Return which page of the table is shown: the one asked for, or with the moment."""
        last = max(1, -(-self.total // PER_PAGE))
        if self.asked_page is not None:
            return min(max(1, self.asked_page), last)
        if self.moment is None:
            return 1
        return min(self.history.scope.newer(self.filters, self.moment.at) // PER_PAGE + 1, last)

    @cached_property
    def rows(self) -> list[Row]:
        """Return the rows of the page, the newest first."""
        start = (self.page - 1) * PER_PAGE
        found = self.history.scope.keys(self.filters)[start : start + PER_PAGE]
        keys = [Key(*row) for row in found]
        rows, writer = read(keys), Writer(self.thread, self.zone)
        return [writer.row(key, rows[key]) for key in keys]

    @property
    def selected(self) -> str:
        """Return the id of the row that stands for the moment; empty without one."""
        return f"event-{plain(self.moment.key)}" if self.moment and self.moment.key else ""

    @property
    def pager(self) -> dict[str, str]:
        """Return the links to the pages before and after, and which of the rows these are."""
        first, last = (self.page - 1) * PER_PAGE + 1, min(self.page * PER_PAGE, self.total)
        pager = {"words": f"{first:,}–{last:,} of {self.total:,}"}
        if self.page > 1:
            pager["newer"] = self.link(page=str(self.page - 1))
        if last < self.total:
            pager["older"] = self.link(page=str(self.page + 1))
        return pager

    def link(self, **changes: str) -> str:
        """Return this address with other parameters; an empty one is left out."""
        kept = [(name, value) for name, value in self.query if name not in changes]
        kept += [(name, value) for name, value in changes.items() if value]
        return f"?{urlencode(kept)}"

    # ---- travelling

    @cached_property
    def stops(self) -> list[tuple[str, str]]:
        """Return what can be travelled to: the newest revisions, oldest first, and now."""
        steps = self.history.steps[-MOST_STEPS:]
        named = [(str(step.number), self._step_words(step)) for step in steps]
        if steps and steps[0].number == 1:
            named.insert(0, ("0", "before anything"))
        return [*named, ("", "now")]

    @property
    def place(self) -> int:
        """Return which stop is shown."""
        if self.moment is None:
            return len(self.stops) - 1
        number = self.moment.number
        reached = [at for at, (name, _) in enumerate(self.stops[:-1]) if int(name) <= number]
        return max(reached, default=0)

    @property
    def stops_json(self) -> str:
        """Return the stops as the slider reads them."""
        return json.dumps(self.stops, ensure_ascii=False, separators=(",", ":"))

    @property
    def place_words(self) -> str:
        """Return what is shown, in words."""
        return self.stops[self.place][1]

    @property
    def moment_words(self) -> str:
        """Return when the moment was."""
        return self.drawing.clock(self.moment.at) if self.moment else ""

    def _step_words(self, step: Step) -> str:
        return f"revision {step.number}, {step.cause}, {self.drawing.clock(step.at)}"

    @property
    def ways(self) -> dict[str, str]:
        """Return the links to the first stop, the ones beside, and now; absent where none is."""
        at, last = self.place, len(self.stops) - 1
        found: dict[str, str] = {}
        if at > 0:
            found |= {"first": self._to(0), "before": self._to(at - 1)}
        if at < last:
            found |= {"after": self._to(at + 1), "now": self._to(last)}
        return found

    def _to(self, place: int) -> str:
        return self.link(at=self.stops[place][0], page="")

    @cached_property
    def windows(self) -> list[tuple[str, str, str]]:
        """Return the windows beside this one: name, key of the keyboard, link; in a fixed order."""
        asked = (self.filters.since, self.filters.until)
        cursor = self.moment.at if self.moment else None
        found = windows(self.drawing.times, asked, about=cursor)
        return [
            (name, key, f"{self.link(since=_iso(since), until=_iso(until), page='')}#lanes")
            for name, key in WINDOWS.items()
            if name in found
            for since, until in (found[name],)
        ]

    # ---- words

    @property
    def empty(self) -> str:
        """Return why there is nothing to show; empty when there is something."""
        if self.total:
            return ""
        if self.filters.active:
            return "Nothing fits these filters."
        if not self.scene.remembers:
            return "Memory is off for this conversation, and nobody has said anything in it."
        return "Nothing has happened here yet: no turn, and no run of the Observer."

    @property
    def note(self) -> str:
        """Return how far memory is from its first work; empty once it has worked."""
        if not self.scene.remembers:
            return "Memory is off for this conversation: nothing of it is ever observed."
        if self.history.cycles or self.history.steps:
            return ""
        raw = self.drawing.points[-1].raw if self.drawing.points else 0
        first = self.limits.buffer or self.limits.observe
        what = "buffering" if self.limits.buffer else "observation"
        return (
            f"Memory has not worked here yet: {words.tokens(raw)} of {words.tokens(first)} tokens "
            f"before the first {what}."
        )

    @property
    def data(self) -> str:
        """Return what the browser draws the curves from."""
        return self.drawing.data(self.limits)

    @property
    def curves(self) -> list[dict[str, Any]]:
        """Return both charts: a sentence, a line, and where its threshold stands."""
        limits = self.limits
        return [
            self._chart("messages", "Message tokens", "raw", limits.observe, limits.ceiling),
            self._chart(
                "observations", "Observation tokens", "remembered", limits.reflect, limits.reflect
            ),
        ]

    def _chart(self, key: str, name: str, curve: str, limit: int, top: int) -> dict[str, Any]:
        highest = max((getattr(point, curve) for point in self.drawing.points), default=0)
        top = max(highest, top)
        return {
            "key": key,
            "name": name,
            "sentence": self.drawing.sentence(curve, name, limit),
            "line": self.drawing.line(curve, top),
            "limit": f"{100 - 100 * limit / top:.2f}" if top else "0",
            "limit_words": words.tokens(limit),
        }

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """Return the kinds the filter offers, and whether each is chosen."""
        return [
            {"key": key, "name": name, "chosen": key in self.filters.kinds}
            for key, name in KINDS.items()
        ]


def _iso(at: datetime | None) -> str:
    return at.isoformat() if at else ""
