"""Small conversations between two people, told in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from memory.quality import MemoryLine, Remembered, Turn

MAY_4, MAY_9 = date(2023, 5, 4), date(2023, 5, 9)


@dataclass(frozen=True)
class Ask:
    text: str
    answer: str
    evidence: tuple[str, ...]
    category: str = "1"
    at: datetime | None = None


TURNS = (
    Turn("A:0", "Nora", "I adopted a greyhound called Biscuit yesterday.", MAY_4, "A"),
    Turn("A:1", "Piet", "Lovely! My allotment has leeks and beetroot.", MAY_4, "A"),
    Turn("B:0", "Nora", "Biscuit chewed the violin case.", MAY_9, "B"),
    Turn("B:1", "Piet", "Last week I sold the motorbike to Inge.", MAY_9, "B"),
)
WHEN = Ask("When did Nora adopt Biscuit?", "3 May 2023", ("A:0",))
WHAT = Ask("What grows on Piet's allotment?", "leeks and beetroot", ("A:1",))


def line(text, *sources, on=MAY_4):
    return MemoryLine(text, on, frozenset(sources))


def remembered(*lines, questions=(WHEN, WHAT), turns=TURNS):
    return Remembered(tuple(turns), tuple(questions), tuple(lines))
