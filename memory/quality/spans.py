"""Reckon with spans of days."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

SLACK = timedelta(days=1)
ALWAYS_NARROW_ENOUGH = 7
TIMES_AS_WIDE = 1.6


class Span(NamedTuple):
    """Hold the first and the last of some days in a row."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """Return how many days lie between the first and the last."""
        return (self.last - self.first).days

    def tells(self, other: Span) -> bool:
        """Tell whether this span says when the other one is: it meets it and is not much wider."""
        meets = self.last >= other.first - SLACK and self.first <= other.last + SLACK
        widest = max(ALWAYS_NARROW_ENOUGH, TIMES_AS_WIDE * (other.days + 2))
        return meets and self.days <= widest


def day(at: date, shift: int = 0) -> Span:
    """Return one day, so many days from another."""
    moved = at + timedelta(days=shift)
    return Span(moved, moved)


def around(at: date, weeks: int) -> Span:
    """Return the days about a day that is so many weeks away: half a week to each side."""
    middle = at + timedelta(weeks=weeks)
    return Span(middle - timedelta(days=3), middle + timedelta(days=3))


def week(at: date, shift: int = 0) -> Span:
    """Return the week from Monday to Sunday that is so many weeks from a day's own."""
    monday = at - timedelta(days=at.weekday()) + timedelta(weeks=shift)
    return Span(monday, monday + timedelta(days=6))


def weekend(at: date, shift: int = 0) -> Span:
    """Return Saturday and Sunday of such a week."""
    sunday = week(at, shift).last
    return Span(sunday - timedelta(days=1), sunday)


def month(year: int, number: int, *, through: int = 0) -> Span:
    """Return a month, and as many after it as asked; numbers beyond 1..12 are of other years."""
    return Span(_first_of(year, number), _first_of(year, number + through + 1) - timedelta(days=1))


def year(number: int) -> Span:
    """Return a year."""
    return month(number, 1, through=11)


def weekday(at: date, number: int, *, ahead: bool) -> Span:
    """Return the nearest such weekday (0 is Monday) strictly after a day, or strictly before it."""
    distance = (number - at.weekday() - 1) % 7 + 1 if ahead else (at.weekday() - number - 1) % 7 + 1
    return day(at, distance if ahead else -distance)


def _first_of(year: int, number: int) -> date:
    years, index = divmod(number - 1, 12)
    return date(year + years, index + 1, 1)
