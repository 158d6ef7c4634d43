"""Count what lines cost as the Actor is sent them, without writing them down again.

A line is counted once, alone, when it is stored. What it costs beside others depends on its
neighbours: the header above it, and whether its time is told. That is added here from
constants, so that the size of a memory is a sum over its lines.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import partial
from typing import Protocol

from memory.engine.dates import annotate, gap
from memory.engine.listing import ARROW, Order, bullet
from memory.engine.shorten import Tokenizer
from memory.engine.values import LineKind

HEADER_TOKENS = 14
"""What ``Date: May 8, 2023 (3 weeks ago)`` costs."""

GAP_TOKENS = 5
"""What ``[3 weeks later]`` costs."""

UNDATED_TOKENS = 3
CLOCK_TOKENS = 5

_CLOCK = "(12:34)"
# A line's dates are told with how far away they are. They are counted as those of the past,
# which they all become, so that a line's count is its own and never changes.
_wording = partial(annotate, today=date(2100, 1, 1))


class Counted(Protocol):
    """Offer what a stored line is sized by; its ``tokens`` are those of it alone."""

    @property
    def text(self) -> str:
        """Return what it says."""
        ...

    @property
    def tokens(self) -> int:
        """Return what it costs alone, as ``line_tokens`` counts it."""
        ...

    @property
    def said_at(self) -> datetime | None:
        """Return when it was said, if somebody knows."""
        ...


@dataclass(frozen=True, slots=True)
class Spanned:
    """Hold what a line is sized by, and from which revision until which it is visible."""

    text: str
    tokens: int
    said_at: datetime | None
    since: int | None = None
    until: int | None = None

    def moves(self, place: int) -> Iterator[tuple[int, bool, int]]:
        """Yield at which revisions it is shown and ended, with its place among others."""
        if self.since is None or (self.until is not None and self.until <= self.since):
            return
        yield self.since, True, place
        if self.until is not None:
            yield self.until, False, place


def line_tokens(
    kind: LineKind, text: str, said_at: datetime | None, *, tokenizer: Tokenizer
) -> int:
    """Return what a line costs alone: bullet, mark, time, text and line end."""
    clock = _CLOCK if _told_alone(text, said_at) else ""
    return tokenizer.count(bullet(kind, text, clock=clock, wording=_wording) + "\n")


def listed_tokens(lines: Iterable[Counted], tz: tzinfo) -> int:
    """Return what lines cost in the order given, with the headers of their days."""
    order = Order(tz)
    tokens = 0
    for line in lines:
        place = order.place(line.text, line.said_at)
        tokens += line.tokens
        tokens += CLOCK_TOKENS * (bool(place.clock) - _told_alone(line.text, line.said_at))
        if place.undated:
            tokens += UNDATED_TOKENS
        elif place.day is not None:
            apart = place.earlier is not None and gap(place.earlier, place.day)
            tokens += HEADER_TOKENS + (GAP_TOKENS if apart else 0)
    return max(0, tokens)


def sizes(lines: Sequence[Spanned], numbers: Iterable[int], tz: tzinfo) -> dict[int, int]:
    """Return the tokens visible at each of some revisions; lines come in order."""
    moves = deque(sorted(move for place, line in enumerate(lines) for move in line.moves(place)))
    visible: list[int] = []
    found: dict[int, int] = {}
    for number in sorted(numbers):
        while moves and moves[0][0] <= number:
            _, shown, place = moves.popleft()
            if shown:
                insort(visible, place)
            else:
                visible.remove(place)
        found[number] = listed_tokens((lines[place] for place in visible), tz)
    return found


def _told_alone(text: str, said_at: datetime | None) -> bool:
    """Tell whether a line's time is counted with it; a sub point mostly shares its parent's."""
    return said_at is not None and not text.startswith(ARROW)
