"""Define a conversation beside what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from memory.quality.questions import Asked
from memory.quality.words import stems


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold one message as it was said; ``session`` names the sitting it belongs to."""

    id: str
    speaker: str
    text: str
    date: date
    session: str = ""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """Hold one line that the Actor sees, the day it stands under and the turns it cites."""

    text: str
    date: date
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Remembered:
    """Hold a conversation, the questions about it, and the lines that are left of it."""

    turns: tuple[Turn, ...]
    questions: tuple[Asked, ...]
    lines: tuple[MemoryLine, ...]

    @property
    def names(self) -> frozenset[str]:
        """Return the stems of the speakers' names, which say nothing about what was said."""
        speakers = {turn.speaker for turn in self.turns}
        return frozenset(stem for speaker in speakers for stem in stems(speaker))

    def session_of(self, sources: Iterable[str]) -> str:
        """Return the sitting in which the first of some turns was said."""
        wanted = set(sources)
        return next((turn.session for turn in self.turns if turn.id in wanted), "")
