"""Prepare a conversation and its lines for being asked about again and again."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from memory.quality.dates import Mention, mentions
from memory.quality.values import MemoryLine, Remembered
from memory.quality.words import stems

MOST_SOURCES = 6
"""A line that cites more turns than this points nowhere: it counts as citing none."""

TOPICAL = 0.25
UNHEARD = 3.0


@dataclass(frozen=True)
class Entry:
    """Hold a line with its stems, those of its neighbours too, and what it says about time."""

    line: MemoryLine
    sources: frozenset[str]
    session: str
    stems: frozenset[str]
    nearby: frozenset[str] = frozenset()

    @cached_property
    def mentions(self) -> list[Mention]:
        """Return what the line says about time, from the day it stands under."""
        return mentions(self.line.text, self.line.date)


@dataclass(frozen=True)
class Index:
    """Find the lines that bear on a question."""

    remembered: Remembered
    entries: tuple[Entry, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", self._with_neighbours(self._alone()))

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the stems of the speakers' names."""
        return self.remembered.names

    @cached_property
    def said(self) -> dict[str, frozenset[str]]:
        """Return the stems of each turn."""
        return {turn.id: frozenset(stems(turn.text)) for turn in self.remembered.turns}

    @cached_property
    def sessions(self) -> dict[str, str]:
        """Return the sitting of each turn."""
        return {turn.id: turn.session for turn in self.remembered.turns}

    @cached_property
    def weights(self) -> dict[str, float]:
        """Return how much each stem tells: the rarer in the conversation, the more."""
        turns = len(self.said)
        frequency = Counter(stem for heard in self.said.values() for stem in heard)
        return {
            stem: math.log(1 + (turns - often + 0.5) / (often + 0.5))
            for stem, often in frequency.items()
        }

    def deriving(self, evidence: tuple[str, ...], asked: frozenset[str]) -> list[Entry]:
        """Return the lines that rest on turns; ones that cite nothing when they are to the point.

        Those must be of the same sitting and share a quarter of what the question's stems weigh.
        """
        sessions = {self.sessions[turn] for turn in evidence if turn in self.sessions}
        wanted = set(evidence)
        return [
            entry
            for entry in self.entries
            if entry.sources & wanted
            or (
                not entry.sources
                and entry.session in sessions
                and self._share(entry.nearby, asked) >= TOPICAL
            )
        ]

    def _share(self, heard: frozenset[str], asked: frozenset[str]) -> float:
        whole = sum(self.weights.get(stem, UNHEARD) for stem in asked)
        part = sum(self.weights.get(stem, UNHEARD) for stem in asked & heard)
        return part / whole if whole else 0.0

    def _alone(self) -> list[Entry]:
        return [
            Entry(
                line=line,
                sources=line.sources if len(line.sources) <= MOST_SOURCES else frozenset(),
                session=self.remembered.session_of(line.sources),
                stems=frozenset(stems(line.text)),
            )
            for line in self.remembered.lines
        ]

    @staticmethod
    def _with_neighbours(entries: list[Entry]) -> tuple[Entry, ...]:
        """Add to each line what the ones before and after it in the sitting say."""
        return tuple(
            Entry(
                entry.line,
                entry.sources,
                entry.session,
                entry.stems,
                frozenset().union(
                    *(
                        other.stems
                        for other in entries[max(0, at - 1) : at + 2]
                        if other.session == entry.session
                    )
                ),
            )
            for at, entry in enumerate(entries)
        )
