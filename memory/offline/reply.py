"""Write statements in the reply format of an Observer or a Reflector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from memory.offline.dates import spell_date

WIDEST = 3
"""Messages a line may span: what a line says should be easy to look up."""

ARROW = "-> "
DONE = "done"
LONGEST = 240
"""Characters of joined facts on one line: a longer line is hard to read and to edit."""

_EMOJI = {"high": "🔴 ", "medium": "🟡 ", "low": "🟢 ", "done": "✅ ", "plain": ""}
_RANK = {"high": 0, "done": 1, "medium": 2, "low": 3, "plain": 4}


@dataclass(frozen=True, slots=True)
class Fact:
    """Hold one statement that is kept, with the numbers it rests on."""

    subject: str
    text: str
    kind: str
    day: date | None
    time: str
    numbers: tuple[int, ...]
    dated: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold the facts that one printed line joins."""

    facts: tuple[Fact, ...]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers the line rests on, in order."""
        return sorted({number for fact in self.facts for number in fact.numbers})

    @property
    def kind(self) -> str:
        """Return the highest kind among the facts."""
        return min((fact.kind for fact in self.facts), key=_RANK.__getitem__)

    def accepts(self, fact: Fact) -> bool:
        """Return whether a fact may stand on this line too."""
        first = self.facts[0]
        if (fact.day, fact.subject) != (first.day, first.subject):
            return False
        if (fact.kind == DONE) != (first.kind == DONE):
            return False
        if fact.dated != first.dated and not {*fact.numbers} <= {*self.numbers}:
            return False  # else a date could be taken for that of another day's event
        if sum(len(one.text) for one in (*self.facts, fact)) > LONGEST:
            return False
        numbers = {*self.numbers, *fact.numbers}
        return max(numbers) - min(numbers) < WIDEST


def join(facts: Iterable[Fact]) -> list[Entry]:
    """Return lines of neighbouring facts, dated ones apart from undated ones."""
    lines: list[Entry] = []
    for fact in facts:
        for index in range(len(lines) - 1, max(-1, len(lines) - 6), -1):
            if lines[index].accepts(fact):
                lines[index] = Entry((*lines[index].facts, fact))
                break
        else:
            lines.append(Entry((fact,)))
    return lines


def print_lines(lines: Iterable[Entry], *, clock: bool = True) -> str:
    """Return the lines under their dates: first of a subject in full, the others below it."""
    printed: list[str] = []
    for day, subjects in _by_day(lines).items():
        if day is not None:
            printed.append(f"Date: {spell_date(day)}")
        for entries in subjects.values():
            first = _words(entries[0], named=True) + _cite(entries[0])
            printed.append(f"* {_head(entries[0], clock)}{first}")
            printed += [
                f"  * {_arrow(entry)}{_words(entry)}{_cite(entry)}" for entry in entries[1:]
            ]
    return "\n".join(printed)


def texts(lines: Iterable[Entry]) -> Iterator[str]:
    """Yield the text of each line as it is stored: without mark, time and citation."""
    for subjects in _by_day(lines).values():
        for entries in subjects.values():
            yield _words(entries[0], named=True)
            yield from (f"{ARROW}{_words(entry)}" for entry in entries[1:])


def _by_day(lines: Iterable[Entry]) -> dict[date | None, dict[str, list[Entry]]]:
    days: dict[date | None, dict[str, list[Entry]]] = {}
    for line in lines:
        first = line.facts[0]
        days.setdefault(first.day, {}).setdefault(first.subject, []).append(line)
    for subjects in days.values():
        for entries in subjects.values():
            # A sub point shows no priority, so the line above it must have the highest.
            entries.sort(key=lambda entry: _RANK[entry.kind])
    return days


def _arrow(entry: Entry) -> str:
    return f"{_EMOJI[DONE]}{ARROW}" if entry.kind == DONE else ARROW


def _head(entry: Entry, clock: bool) -> str:
    time = entry.facts[0].time
    return _EMOJI[entry.kind] + (f"({time}) " if time and clock else "")


def _words(entry: Entry, *, named: bool = False) -> str:
    subject = entry.facts[0].subject
    text = "; ".join(fact.text for fact in entry.facts)
    return f"{subject}: {text}" if named and subject else text


def _cite(entry: Entry) -> str:
    return f" [#{','.join(map(str, entry.numbers))}]"
