"""Say when a day was or will be, seen from another day."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, start=1)}
_NUMBERS |= {name[:3]: number for name, number in _NUMBERS.items()}

_AROUND = {"early": 7, "mid": 15, "late": 23}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_PARTS = {"early": (1, 10), "mid": (11, 20), "late": (21, 31)}

_TO = r" ?(?:-|–|—|to) ?"
_MONTH = r"([a-z]{3,9})\.?"
_YEAR = r"([12]\d{3})"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"

_WEEKDAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? ")
_VAGUE = re.compile(r"(?:around|about|approximately|roughly|circa|ca\.|since|by|before|after) ")

_ONE_DAY = re.compile(rf"{_MONTH} {_DAY},? {_YEAR}")
_DAY_FIRST = re.compile(rf"{_DAY} {_MONTH},? {_YEAR}")
_ISO_DAY = re.compile(r"([12]\d{3})-(\d{2})-(\d{2})")
_DAYS_OF_A_MONTH = re.compile(rf"{_MONTH} {_DAY}{_TO}{_DAY},? {_YEAR}")
_DAYS_ACROSS_MONTHS = re.compile(rf"{_MONTH} {_DAY}(?:,? {_YEAR})?{_TO}{_MONTH} {_DAY},? {_YEAR}")
_YEAR_FIRST_SAID = re.compile(rf"{_MONTH} {_DAY},? {_YEAR}{_TO}{_MONTH} {_DAY}")
_PART_OF_A_MONTH = re.compile(rf"(early|mid|late)[ -]{_MONTH},? {_YEAR}")
_TWO_MONTHS = re.compile(rf"{_MONTH}(?:,? {_YEAR})?{_TO}{_MONTH},? {_YEAR}")
_SEASON = re.compile(rf"(spring|summer|autumn|fall|winter)(?: of)?,? {_YEAR}")
_QUARTER = re.compile(rf"q([1-4]),? {_YEAR}")
_TWO_YEARS = re.compile(rf"{_YEAR}{_TO}{_YEAR}")
_ONE_MONTH = re.compile(rf"{_MONTH},? {_YEAR}")
_ONE_YEAR = re.compile(_YEAR)

_LONGEST_DATE = 60
_BRACKETS = re.compile(
    rf"\((?P<sign>(?:meaning|estimated):? )?(?P<date>[^()\n]{{4,{_LONGEST_DATE}}})\)", re.IGNORECASE
)
_INTENT = re.compile(
    r"\b(?:will \w+|plan(?:s|ned|ning)? (?:to|on|for)|look(?:s|ing)? forward to|going to"
    r"|intend(?:s|ed|ing)? to|want(?:s|ed|ing)? to|need(?:s|ed|ing)? to|hop(?:es|ed|ing) to"
    r"|about to)\b",
    re.IGNORECASE,
)
LAPSED = "likely already happened"

SHORTEST_GAP = 600
_DAY_MINUTES = 24 * 60
_UNITS = (
    ("year", 365 * _DAY_MINUTES, "month", 30 * _DAY_MINUTES),
    ("month", 30 * _DAY_MINUTES, "week", 7 * _DAY_MINUTES),
    ("week", 7 * _DAY_MINUTES, "day", _DAY_MINUTES),
    ("day", _DAY_MINUTES, "hour", 60),
    ("hour", 60, "minute", 1),
)
"""Units of a gap, longest first, each with the one told beside it; sizes in minutes."""


@dataclass(frozen=True, slots=True)
class _Period:
    """Hold what a written date covers; ``said`` is the day it is spoken of as."""

    first: date
    last: date
    said: date
    unit: str = "day"

    def seen_from(self, today: date) -> str:
        if self.unit in ("month", "year") and self.first <= today <= self.last:
            return f"this {self.unit}"
        return relative_day(self.said, today)


def spelled(day: date) -> str:
    """Return a day as our headers print it: ``May 8, 2023``."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year:04d}"


def parse_day(text: str) -> date | None:
    """Return the day that ``Month D, YYYY`` names, or None when there is no such day."""
    match = _ONE_DAY.fullmatch(text.lower())
    return _day(match[3], match[1], match[2]) if match else None


def relative_day(day: date, today: date) -> str:
    """Return how far a day is from today: ``today``, ``3 weeks ago``, ``in 1 year``."""
    days = (day - today).days
    if days in _NEAR:
        return _NEAR[days]
    return f"{_span(-days)} ago" if days < 0 else f"in {_span(days)}"


def gap(earlier: date, later: date) -> str:
    """Return the line that marks a gap between two days, or nothing when they are close.

    Gaps are never told in years: between two headers the months matter.
    """
    days = (later - earlier).days
    if days < 2:
        return ""
    return f"[{_span(days, longest='month')} later]"


def gap_text(seconds: float) -> str:
    """Return how long nothing was said, ``2 hours 5 minutes later``; nothing below ten minutes."""
    if seconds < SHORTEST_GAP:
        return ""
    minutes = round(seconds / 60) if seconds < 3600 else int(seconds // 60)
    for unit, size, lesser, part in _UNITS:
        if minutes >= size:
            told = [_counted(minutes // size, unit)]
            rest = minutes % size // part
            # Twelve months of thirty days leave a rest of a year that is not a thirteenth month.
            rest = min(rest, 11) if lesser == "month" else rest
            return " ".join([*told, *([_counted(rest, lesser)] if rest else []), "later"])
    return f"{_counted(minutes, 'minute')} later"


def gap_marker(seconds: float, at: datetime) -> str:
    """Return the text of a gap that ended at a time, in its zone; nothing below ten minutes.

    For example ``2 hours 5 minutes later — March 2, 2026, 14:05``.
    """
    text = gap_text(seconds)
    return f"{text} — {spelled(at.date())}, {at:%H:%M}" if text else ""


def annotate(text: str, today: date) -> str:
    """Return the text with each bracketed date followed by how far it is from today.

    Bracketed dates are ``(meaning …)`` and ``(estimated …)`` anywhere, and a plain
    ``(May 7, 2023)`` at the very end. One that is past, after words of intent on its line,
    is said to have likely happened. What is no date stays as it is.
    """
    return _BRACKETS.sub(lambda match: _annotated(match, today), text)


_NEAR = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def _span(days: int, *, longest: str = "year") -> str:
    if days < 7:
        return _counted(days, "day")
    if days < 30:
        return _counted(days // 7, "week")
    if days < 365 or longest == "month":
        return _counted(days // 30, "month")
    return _counted(days // 365, "year")


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _annotated(match: re.Match[str], today: date) -> str:
    period = _period(match["date"])
    if period is None or not (match["sign"] or _is_closing_day(match, period)):
        return match[0]
    words = period.seen_from(today)
    if period.last < today and _INTENT.search(_before(match)):
        words = f"{words}, {LAPSED}"
    return f"{match[0][:-1]}; {words})"


def _is_closing_day(match: re.Match[str], period: _Period) -> bool:
    # Elsewhere, and for bare years, brackets hold other things than the time of an event:
    # a film's year, a version, a quotation.
    return period.unit == "day" and not match.string[match.end() :].strip(" .!")


def _before(match: re.Match[str]) -> str:
    line = match.string.rfind("\n", 0, match.start()) + 1
    return match.string[line : match.start()]


def _period(text: str) -> _Period | None:
    text = _VAGUE.sub("", text.strip().lower(), count=1)
    text = _WEEKDAY.sub("", text, count=1)
    for pattern, read in _READERS:
        if (match := pattern.fullmatch(text)) and (found := read(*match.groups())):
            return found
    return None


def _one_day(month: str, day: str, year: str) -> _Period | None:
    found = _day(year, month, day)
    return _Period(found, found, found) if found else None


def _day_first(day: str, month: str, year: str) -> _Period | None:
    return _one_day(month, day, year)


def _iso_day(year: str, month: str, day: str) -> _Period | None:
    return _one_day(MONTHS[int(month) - 1].lower(), day, year) if 0 < int(month) < 13 else None


def _days_of_a_month(month: str, first: str, last: str, year: str) -> _Period | None:
    return _days_across_months(month, first, year, month, last, year)


def _days_across_months(
    month: str, day: str, year: str | None, last_month: str, last_day: str, last_year: str
) -> _Period | None:
    last = _day(last_year, last_month, last_day)
    first = _day(year or last_year, month, day)
    if first and last and first > last and year is None:
        first = _day(str(last.year - 1), month, day)
    if first is None or last is None or first > last:
        return None
    return _Period(first, last, first)


def _year_first_said(
    month: str, day: str, year: str, last_month: str, last_day: str
) -> _Period | None:
    same = _days_across_months(month, day, year, last_month, last_day, year)
    next_year = str(int(year) + 1)
    return same or _days_across_months(month, day, year, last_month, last_day, next_year)


def _part_of_a_month(part: str, month: str, year: str) -> _Period | None:
    whole = _one_month(month, year)
    if whole is None:
        return None
    first, last = _PARTS[part]
    return _Period(
        whole.first.replace(day=first),
        min(whole.last, whole.first + timedelta(days=last - 1)),
        whole.first.replace(day=_AROUND[part]),
        "part",
    )


def _two_months(month: str, first_year: str | None, last_month: str, year: str) -> _Period | None:
    first, last = _one_month(month, first_year or year), _one_month(last_month, year)
    if first is None or last is None:
        return None
    start = first.first
    if start > last.first:
        if first_year:
            return None
        start = start.replace(year=int(year) - 1)
    return _Period(start, last.last, last.first, "part")


def _season(name: str, year: str) -> _Period | None:
    # Where the speaker lives nobody knows; those who say so mostly live north of the equator.
    return _months(int(year), _SEASONS[name])


def _quarter(number: str, year: str) -> _Period | None:
    return _months(int(year), int(number) * 3 - 2)


def _months(year: int, first_month: int) -> _Period:
    """Return the three months from one on; they are spoken of as their middle."""
    first, middle, last = (
        date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
        for month in range(first_month, first_month + 3)
    )
    end = last.replace(day=monthrange(last.year, last.month)[1])
    return _Period(first, end, middle.replace(day=15), "part")


def _two_years(year: str, last_year: str) -> _Period | None:
    first, last = _one_year(year), _one_year(last_year)
    if first is None or last is None or first.first > last.first:
        return None
    return _Period(first.first, last.last, first.said, "part")


def _one_month(month: str, year: str) -> _Period | None:
    first = _day(year, month, "1")
    if first is None:
        return None
    last = first.replace(day=monthrange(first.year, first.month)[1])
    return _Period(first, last, first.replace(day=15), "month")


def _one_year(year: str) -> _Period | None:
    number = int(year)
    return _Period(date(number, 1, 1), date(number, 12, 31), date(number, 7, 1), "year")


_READERS = (
    (_ONE_DAY, _one_day),
    (_DAY_FIRST, _day_first),
    (_ISO_DAY, _iso_day),
    (_DAYS_OF_A_MONTH, _days_of_a_month),
    (_DAYS_ACROSS_MONTHS, _days_across_months),
    (_YEAR_FIRST_SAID, _year_first_said),
    (_PART_OF_A_MONTH, _part_of_a_month),
    (_TWO_MONTHS, _two_months),
    (_ONE_MONTH, _one_month),
    (_SEASON, _season),
    (_QUARTER, _quarter),
    (_TWO_YEARS, _two_years),
    (_ONE_YEAR, _one_year),
)


def _day(year: str, month: str, day: str) -> date | None:
    number = _NUMBERS.get(month)
    if number is None:
        return None
    try:
        return date(int(year), number, int(day))
    except ValueError:
        return None
