"""Write memory lines down under date headers, one bullet each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from memory.engine.dates import spelled
from memory.engine.escape import clean, escape
from memory.engine.transcript import indented
from memory.engine.values import Line, LineKind

MARKS = {
    LineKind.HIGH: "🔴",
    LineKind.MEDIUM: "🟡",
    LineKind.LOW: "🟢",
    LineKind.DONE: "✅",
}
ARROW = "->"
UNDATED = "Undated:"
CONTINUED = "    "

Heading = Callable[[date, date | None], list[str]]


def plain_heading(day: date, earlier: date | None) -> list[str]:
    """Return the header of a day, whatever came before it."""
    return [f"Date: {spelled(day)}"]


def as_written(text: str) -> str:
    """Return the text as it is."""
    return text


@dataclass(frozen=True, slots=True)
class Place:
    """Tell what a line needs where it stands: a header above it, and its time beside it.

    ``day`` is the day a new header names, ``earlier`` the day headed before that one;
    ``undated`` asks for the header of lines without a day.
    """

    clock: str
    day: date | None = None
    earlier: date | None = None
    undated: bool = False


class Order:
    """Follow lines in the order they are listed in, and place each."""

    def __init__(self, tz: tzinfo) -> None:
        self._tz = tz
        self._headed: date | None = None
        self._under_headed = False
        self._earlier: datetime | None = None

    def place(self, text: str, said_at: datetime | None) -> Place:
        """Return what the next line needs."""
        at = said_at.astimezone(self._tz) if said_at else None
        sub = text.startswith(ARROW)
        clock = "" if sub and at == self._earlier else _clock(at)
        self._earlier = at or self._earlier
        if sub and at is None:
            return Place(clock)
        return self._under(at.date() if at else None, clock)

    def _under(self, day: date | None, clock: str) -> Place:
        if day is None:
            undated, self._under_headed = self._under_headed, False
            return Place(clock, undated=undated)
        if day == self._headed and self._under_headed:
            return Place(clock)
        earlier, self._headed, self._under_headed = self._headed, day, True
        return Place(clock, day, earlier)


class Listing:
    """Collect lines as text; adding one never changes what is written already.

    ``heading`` writes what stands above the lines of a day, given the day headed before;
    ``wording`` what is made of each line's text.
    """

    def __init__(
        self,
        tz: tzinfo,
        *,
        heading: Heading = plain_heading,
        wording: Callable[[str], str] = as_written,
    ) -> None:
        self._order = Order(tz)
        self._heading = heading
        self._wording = wording
        self._written: list[str] = []

    @property
    def text(self) -> str:
        """Return everything added so far."""
        return "\n".join(self._written)

    def add(self, line: Line, *, cite: str = "") -> None:
        """Write one line, below a new header where its day asks for one."""
        place = self._order.place(line.text, line.said_at)
        if place.undated:
            self._written.append(UNDATED)
        elif place.day is not None:
            self._written += self._heading(place.day, place.earlier)
        self._written.append(
            bullet(line.kind, line.text, clock=place.clock, cite=cite, wording=self._wording)
        )

    def note(self, remark: str) -> None:
        """Write a remark of ours between the lines."""
        self._written.append(remark)


def bullet(
    kind: LineKind,
    text: str,
    *,
    clock: str = "",
    cite: str = "",
    wording: Callable[[str], str] = as_written,
) -> str:
    """Return one line as it is listed: its mark, its time, its text, and what it rests on."""
    sub = text.startswith(ARROW)
    arrow = ARROW if sub and kind is not LineKind.DONE else ""
    first, *more = escape(wording(clean(text.removeprefix(ARROW)).strip())).split("\n")
    words = ["*", MARKS.get(kind, ""), clock, arrow, first, cite]
    listed = " ".join(word for word in words if word)
    return indented("\n".join([f"{'  ' if sub else ''}{listed}", *more]), CONTINUED)


def tells_hour(at: datetime) -> bool:
    """Tell whether somebody gave the hour: midnight stands for a day without one."""
    return (at.hour, at.minute) != (0, 0)


def _clock(at: datetime | None) -> str:
    return f"({at:%H:%M})" if at and tells_hour(at) else ""
