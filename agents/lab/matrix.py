"""Search every pane's next request for what was said in the others, and judge what is found.

Pure: panes and facts go in, words come out. What a pane *may* see follows from the lab as it
was laid out alone, never from memory's own rows, so that a fault there cannot excuse itself.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

AROUND = 40


class Verdict(StrEnum):
    """Say in words how a fact and a pane stand to each other."""

    OWN = "own"
    GONE = "own, not in the request"
    SHARED = "shared as intended"
    ABSENT = "shared, not in the request"
    ISOLATED = "isolated"
    LEAK = "leak"
    UNSAID = "nobody said it"


@dataclass(frozen=True)
class Place:
    """Hold one text that belongs to a pane.

    ``sent`` tells that it is part of the next request; others are memory's rows and what
    models were asked on the pane's behalf.
    """

    name: str
    text: str
    sent: bool = True


@dataclass(frozen=True)
class Seat:
    """Hold what a pane may see: everything said in its thread, or in all that share its memory.

    ``said`` are the prompts of its thread.
    """

    pane: str
    thread: str
    memory: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """Hold a text to look for; ``pane`` is where it is from, if that is known beforehand."""

    text: str
    pane: str = ""


@dataclass(frozen=True)
class Finding:
    """Say where a fact was found, with the words around it."""

    place: str
    before: str
    match: str
    after: str
    sent: bool = True


@dataclass(frozen=True)
class Cell:
    """Hold the verdict about one fact in one pane, and what it rests on."""

    fact: str
    pane: str
    verdict: Verdict
    found: tuple[Finding, ...] = ()

    @property
    def sent(self) -> bool:
        """Tell whether the fact is in the pane's next request."""
        return any(finding.sent for finding in self.found)


@dataclass(frozen=True)
class Row:
    """Hold one fact's verdicts; ``said_in`` are the panes that said it."""

    fact: str
    said_in: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def leaks(self) -> bool:
        """Tell whether any pane sees what it must not."""
        return any(cell.verdict is Verdict.LEAK for cell in self.cells)


Read = Callable[[Seat], Sequence[Place]]


def judge(facts: Iterable[Fact], seats: Sequence[Seat], read: Read) -> list[Row]:
    """Return a row for each fact; every pane's places are read once."""
    places = {seat.pane: [(place, plain(place.text)) for place in read(seat)] for seat in seats}
    return [_row(fact, seats, places) for fact in facts]


def judge_one(fact: Fact, pane: str, seats: Sequence[Seat], read: Read) -> Cell:
    """Return the verdict about one fact in one pane. Raises StopIteration without that pane."""
    (row,) = judge([fact], seats, lambda seat: read(seat) if seat.pane == pane else ())
    return next(cell for cell in row.cells if cell.pane == pane)


_Places = dict[str, list[tuple[Place, str]]]


def _row(fact: Fact, seats: Sequence[Seat], places: _Places) -> Row:
    wanted = plain(fact.text)
    saying = [seat for seat in seats if _says(seat, fact, wanted)]
    cells = tuple(_cell(fact, wanted, seat, saying, places[seat.pane]) for seat in seats)
    return Row(fact.text, tuple(seat.pane for seat in saying), cells)


def _says(seat: Seat, fact: Fact, wanted: str) -> bool:
    return seat.pane == fact.pane or any(wanted in plain(text) for text in seat.said)


def _cell(
    fact: Fact, wanted: str, seat: Seat, saying: Sequence[Seat], places: list[tuple[Place, str]]
) -> Cell:
    hits = [(place, text) for place, text in places if wanted in text]
    verdict = _verdict(seat, saying, [place for place, _ in hits])
    found = tuple(_finding(place, text, wanted) for place, text in hits)
    return Cell(fact.text, seat.pane, verdict, found)


def _verdict(seat: Seat, saying: Sequence[Seat], hits: Sequence[Place]) -> Verdict:
    sent = any(place.sent for place in hits)
    if not saying:
        return Verdict.UNSAID
    if any(seat.thread == other.thread for other in saying):
        return Verdict.OWN if sent else Verdict.GONE
    if any(seat.memory == other.memory for other in saying):
        return Verdict.SHARED if sent else Verdict.ABSENT
    # Not only what is sent: a line in the wrong memory is a leak before anybody is told it.
    return Verdict.LEAK if hits else Verdict.ISOLATED


def _finding(place: Place, text: str, wanted: str) -> Finding:
    at = text.index(wanted)
    end = at + len(wanted)
    before = text[max(0, at - AROUND) : at]
    return Finding(place.name, before, text[at:end], text[end : end + AROUND], place.sent)


def plain(text: str) -> str:
    """Return a text so that two that say the same are equal: unescaped, lower case, one line."""
    return " ".join(html.unescape(text).casefold().split())
