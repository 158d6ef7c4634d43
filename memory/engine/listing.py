"""Write memory lines down under date headers, one bullet each."""

from __future__ import annotations

from collections.abc import Callable
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
        self._tz = tz
        self._heading = heading
        self._wording = wording
        self._written: list[str] = []
        self._headed: date | None = None
        self._under_headed = False
        self._earlier: datetime | None = None

    @property
    def text(self) -> str:
        """Return everything added so far."""
        return "\n".join(self._written)

    def add(self, line: Line, *, cite: str = "") -> None:
        """Write one line, below a new header where its day asks for one."""
        at = line.said_at.astimezone(self._tz) if line.said_at else None
        sub = line.text.startswith(ARROW)
        if not (sub and at is None):
            self._head(at.date() if at else None)
        clock = "" if sub and at == self._earlier else _clock(at)
        self._written.append(self._bullet(line, clock, cite))
        self._earlier = at or self._earlier

    def note(self, remark: str) -> None:
        """Write a remark of ours between the lines."""
        self._written.append(remark)

    def _head(self, day: date | None) -> None:
        if day is None:
            if self._under_headed:
                self._written.append(UNDATED)
            self._under_headed = False
        elif day != self._headed or not self._under_headed:
            self._written += self._heading(day, self._headed)
            self._headed = day
            self._under_headed = True

    def _bullet(self, line: Line, clock: str, cite: str) -> str:
        sub = line.text.startswith(ARROW)
        text = line.text.removeprefix(ARROW)
        arrow = ARROW if sub and line.kind is not LineKind.DONE else ""
        first, *more = escape(self._wording(clean(text).strip())).split("\n")
        words = ["*", MARKS.get(line.kind, ""), clock, arrow, first, cite]
        bullet = " ".join(word for word in words if word)
        return indented("\n".join([f"{'  ' if sub else ''}{bullet}", *more]), CONTINUED)


def _clock(at: datetime | None) -> str:
    # Midnight stands for a day whose hour nobody gave.
    return f"({at:%H:%M})" if at and (at.hour, at.minute) != (0, 0) else ""
