"""Make lines of memory as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import time as clock_time
from zoneinfo import ZoneInfo

from agents import words
from memory.models import Line, Thread

#: How many lines of a cycle or a change are shown at its marker.
MOST_LINES = 40


@dataclass(frozen=True)
class LineShown:
    """Show one statement of the memory; ``messages`` is how many messages it rests on."""

    id: str
    kind: str
    letter: str
    rank: str
    at: str
    time: str
    text: str
    sub: bool
    messages: int
    pinned: bool
    thread: str = ""
    title: str = ""
    page: str = ""


SUB_POINT = "-> "

_LETTERS = {
    Line.Kind.HIGH: ("H", "high"),
    Line.Kind.MEDIUM: ("M", "medium"),
    Line.Kind.LOW: ("L", "low"),
    Line.Kind.DONE: ("✓", "done"),
    Line.Kind.PLAIN: ("·", "plain"),
}


def line_shown(line: Line, zone: ZoneInfo, of: Thread | None = None) -> LineShown:
    """Return a stored line as the page shows it; ``of`` is the other conversation it is of."""
    letter, rank = _LETTERS[Line.Kind(line.kind)]
    said_at = line.said_at.astimezone(zone) if line.said_at else None
    return LineShown(
        id=str(line.pk),
        kind=line.kind,
        letter=letter,
        rank=rank,
        at=said_at.isoformat() if said_at else "",
        # Midnight stands for a day whose hour nobody gave.
        time=words.clock(said_at) if said_at and said_at.time() != clock_time.min else "",
        text=line.text.removeprefix(SUB_POINT),
        sub=line.text.startswith(SUB_POINT),
        messages=_rests_on(line),
        pinned=line.pinned,
        thread=str(of.pk) if of else "",
        title=str(of) if of else "",
    )


def _rests_on(line: Line) -> int:
    if line.first_position is None or line.last_position is None:
        return 0
    return 1 + line.last_position - line.first_position


def some(lines: Iterable[Line], zone: ZoneInfo) -> tuple[tuple[LineShown, ...], int]:
    """Return the first of some lines as the page shows them, and how many more there are."""
    shown = [line_shown(line, zone) for line in lines]
    return tuple(shown[:MOST_LINES]), max(0, len(shown) - MOST_LINES)
