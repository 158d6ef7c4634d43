"""Read questions with known answers: what a right answer must hold, or the days it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from typing import Protocol

from memory.quality.dates import MONTHS, Mention, printed, weekday_number
from memory.quality.spans import Span, day, month, weekday
from memory.quality.words import stems

DATED = frozenset({"2", "temporal-reasoning"})
UNANSWERABLE = frozenset({"5"})

_GLUED = re.compile(r"(?<=\d)(?=[A-Z][a-z])|(?<=[a-z]),?(?=\d{4})")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{4,}\b")
_BESIDE = re.compile(
    r"(?P<unit>weekend|week|month|day|(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?)s? "
    r"(?P<side>before|prior to|of|after) (?P<rest>.+)",
    re.IGNORECASE,
)


class Asked(Protocol):
    """Describe a question: its answer as people gave it, and the turns that hold it.

    ``category`` is the data set's own; ``at`` when it is asked, None for after the last turn.
    """

    @property
    def text(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def evidence(self) -> tuple[str, ...]: ...
    @property
    def at(self) -> datetime | None: ...


def answerable(question: Asked) -> bool:
    """Tell whether the conversation holds an answer; some sets ask what was never said."""
    return bool(question.answer.strip()) and question.category not in UNANSWERABLE


def answer_key(question: Asked, names: frozenset[str]) -> frozenset[str]:
    """Return the stems that make up the answer beyond what the question says and who speaks."""
    asked, answer = frozenset(stems(question.text)), frozenset(stems(question.answer))
    return (answer - (asked - names) - names) or (answer - (asked - names)) or answer


def asked_days(question: Asked) -> Span | None:
    """Return the days that a question about time wants to hear; None for other questions."""
    about_time = question.category in DATED or question.text.lower().startswith("when")
    return days_of(question.answer) if about_time else None


def days_of(answer: str) -> Span | None:
    """Return the days an answer names, None when it is no date: a duration, say, or a list."""
    answer = _CAPITALISED.sub(_month_as_meant, _GLUED.sub(" ", answer))
    dates = printed(answer)
    beside = _BESIDE.search(answer)
    if beside and (anchors := printed(beside["rest"])):
        found = _days_beside(beside, anchors)
        if found:
            return found
    return dates[0].span if dates else None


def _month_as_meant(word: re.Match[str]) -> str:
    """Return a month where a person mistyped one: answers were written by hand."""
    close = get_close_matches(word[0].lower(), MONTHS.split(), n=1, cutoff=0.9)
    return close[0].title() if close else word[0]


def _days_beside(beside: re.Match[str], anchors: Sequence[Mention]) -> Span | None:
    """Return the days of “the week before 9 June 2023” and its like."""
    anchor, unit, side = anchors[0].span, beside["unit"].lower(), beside["side"].lower()
    first, after = anchor.first, side == "after"
    if side == "of":
        return Span(first - timedelta(days=3), anchor.last + timedelta(days=6))
    if unit in _REACH:
        return _reach(first, _REACH[unit], after=after)
    if unit == "month":
        return month(first.year, first.month + (1 if after else -1))
    if unit == "day":
        return day(first, 1 if after else -1)
    number = weekday_number(unit)
    return None if number is None else weekday(first, number, ahead=after)


_REACH = {"week": 13, "weekend": 9}


def _reach(first: date, days: int, *, after: bool) -> Span:
    if after:
        return Span(first, first + timedelta(days=days))
    return Span(first - timedelta(days=days), first - timedelta(days=1))
