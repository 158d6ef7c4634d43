"""Find when things happen: read dates in a text against the day it was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

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
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBER_NAMES = "one two three four five six seven eight nine ten eleven twelve"
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    **{name: n for n, name in enumerate(_NUMBER_NAMES.split(), 1)},
    **{"a": 1, "an": 1, "a couple": 2, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3},
    **{"several": 4, "some": 3},
}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_CAPITAL_MONTH = r"(?P<month>(?-i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)\b"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_COUNT = (
    r"(?P<count>\d{1,3}|a couple of|a couple|couple of|a few|few|several|some|an|a|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|eleven|twelve)"
)
_WHICH = r"(?P<which>last|past|this past|previous|this coming|this|next|coming|upcoming)"
_PREPOSITION = r"(?:in|back in|since|until|by|during)"
_HEDGE = r"(?:about |around |almost |nearly |over |just )?"


class Grain(StrEnum):
    """Name how exactly a time is known."""

    DAY = "day"
    AROUND = "around"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    SEASON = "season"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Moment:
    """Hold one time expression of a text: where it stands and the days it means."""

    start: int
    end: int
    first: date
    last: date
    grain: Grain
    relative: bool


Found = tuple[date, date, Grain]
Reader = Callable[[re.Match[str], date], Found]


def find_moments(text: str, said_on: date) -> list[Moment]:
    """Return the times a text names, in order of place, read as said on a day."""
    if not _HINT.search(text):
        return []
    plain = text.replace("’", "'")
    found: list[Moment] = []
    for pattern, reader, relative in _RULES:
        for match in pattern.finditer(plain):
            if any(match.start() < other.end and other.start < match.end() for other in found):
                continue
            meaning = _read(reader, match, said_on)
            if meaning is not None:
                found.append(Moment(match.start(), match.end(), *meaning, relative))
    return sorted(found, key=lambda moment: moment.start)


def spell(moment: Moment, year: int | None = None) -> str:
    """Return a moment as an explicit date; the year is left out where it equals ``year``."""
    first = moment.first
    day = _spell_day(first, year)
    match moment.grain:
        case Grain.DAY:
            return day
        case Grain.AROUND:
            middle = first + (moment.last - first) // 2
            return f"about {_spell_day(middle, year)}"
        case Grain.WEEKEND:
            return f"weekend of {day}"
        case Grain.WEEK:
            return f"week of {day}"
        case Grain.MONTH:
            return f"{MONTHS[first.month - 1]} {first.year}"
        case Grain.SEASON:
            return f"{_season_name(first)} {first.year}"
        case Grain.YEAR:
            return str((first + (moment.last - first) // 2).year)


def spell_date(day: date) -> str:
    """Return a day as the headers of observations print it, such as May 8, 2023."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def read_date(text: str) -> date | None:
    """Return the day a header such as ``May 8, 2023 (2 days ago)`` names, None without one."""
    match = re.match(rf"{_MONTH} {_DAY},? {_YEAR}", text.strip(), re.I)
    try:
        return _absolute_day(match, date.min)[0] if match else None
    except ValueError:
        return None


def _spell_day(day: date, year: int | None) -> str:
    return f"{MONTHS[day.month - 1]} {day.day}" if day.year == year else spell_date(day)


def _season_name(first: date) -> str:
    return {3: "spring", 6: "summer", 9: "autumn", 12: "winter"}[first.month]


def _read(reader: Reader, match: re.Match[str], said_on: date) -> Found | None:
    try:
        return reader(match, said_on)
    except (ValueError, OverflowError):
        return None  # 31 February, or a year out of range: not a date after all


# --- readers: one for each way of naming a time -----------------------------------------


def _on(day: date) -> Found:
    return day, day, Grain.DAY


def _shifted(days: int) -> Reader:
    return lambda _, said_on: _on(said_on + timedelta(days=days))


def _month_number(match: re.Match[str]) -> int:
    short = match["month"][:3].title()
    return next(n for n, name in enumerate(MONTHS, 1) if name.startswith(short))


def _whole_month(year: int, month: int) -> Found:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1), Grain.MONTH


def _whole_year(year: int) -> Found:
    return date(year, 1, 1), date(year, 12, 31), Grain.YEAR


def _week(said_on: date, weeks: int) -> Found:
    monday = said_on - timedelta(days=said_on.weekday()) + timedelta(weeks=weeks)
    return monday, monday + timedelta(days=6), Grain.WEEK


def _weekend(said_on: date, weeks: int) -> Found:
    _, sunday, _ = _week(said_on, weeks)
    return sunday - timedelta(days=1), sunday, Grain.WEEKEND


def _iso_day(match: re.Match[str], said_on: date) -> Found:
    return _on(date(int(match["year"]), int(match["m"]), int(match["day"])))


def _absolute_day(match: re.Match[str], said_on: date) -> Found:
    return _on(date(int(match["year"]), _month_number(match), int(match["day"])))


def _week_of(match: re.Match[str], said_on: date) -> Found:
    """Read ``week of May 1, 2023`` as this module itself writes it."""
    year = int(match["year"] or said_on.year)
    first = date(year, _month_number(match), int(match["day"]))
    weekend = match["span"].lower() == "weekend"
    return first, first + timedelta(days=1 if weekend else 6), Grain(match["span"].lower())


def _about(match: re.Match[str], said_on: date) -> Found:
    year = int(match["year"] or said_on.year)
    middle = date(year, _month_number(match), int(match["day"]))
    return middle - timedelta(days=3), middle + timedelta(days=3), Grain.AROUND


def _absolute_month(match: re.Match[str], said_on: date) -> Found:
    return _whole_month(int(match["year"]), _month_number(match))


def _day_of_month(match: re.Match[str], said_on: date) -> Found:
    """Read ``March 3`` as the nearest one: half a year is as far as people leave the year out."""
    month, day = _month_number(match), int(match["day"])
    years = (said_on.year - 1, said_on.year, said_on.year + 1)
    candidates = [date(year, month, day) for year in years if _exists(year, month, day)]
    if not candidates:
        raise ValueError("no such day")
    return _on(min(candidates, key=lambda other: abs((other - said_on).days)))


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _bare_month(match: re.Match[str], said_on: date) -> Found:
    month = _month_number(match)
    which = (match["which"] or "").lower()
    year = said_on.year
    if which in ("last", "past", "this past", "previous") and month >= said_on.month:
        year -= 1
    elif which in ("next", "coming", "upcoming", "this coming") and month <= said_on.month:
        year += 1
    elif not which and month > said_on.month and _looks_back(match.string):
        year -= 1
    return _whole_month(year, month)


def _count(match: re.Match[str]) -> int:
    said = match["count"].lower()
    return int(said) if said.isdigit() else _COUNTS[said]


def _ago(match: re.Match[str], said_on: date) -> Found:
    return _distance(said_on, -_count(match), match["unit"].lower())


def _ahead(match: re.Match[str], said_on: date) -> Found:
    return _distance(said_on, _count(match), match["unit"].lower())


def _distance(said_on: date, count: int, unit: str) -> Found:
    if unit == "day":
        return _on(said_on + timedelta(days=count))
    if unit == "week":
        middle = said_on + timedelta(weeks=count)
        return middle - timedelta(days=3), middle + timedelta(days=3), Grain.AROUND
    if unit == "month":
        return _whole_month(said_on.year, said_on.month + count)
    return _whole_year(said_on.year + count)


def _steps(which: str) -> int:
    low = which.lower()
    return -1 if low in ("last", "past", "this past", "previous") else 0 if low == "this" else 1


def _which_unit(match: re.Match[str], said_on: date) -> Found:
    steps = _steps(match["which"])
    match match["unit"].lower():
        case "week":
            return _week(said_on, steps)
        case "weekend":
            return _weekend(said_on, steps)
        case "month":
            return _whole_month(said_on.year, said_on.month + steps)
        case _:
            return _whole_year(said_on.year + steps)


def _which_weekday(match: re.Match[str], said_on: date) -> Found:
    wanted = _WEEKDAYS.index(match["weekday"][:3].lower())
    which = match["which"].lower() if "which" in match.re.groupindex else "on"
    back = (said_on.weekday() - wanted - 1) % 7 + 1
    ahead = (wanted - said_on.weekday() - 1) % 7 + 1
    past = _steps(which) < 0 if which not in ("on", "this") else _looks_back(match.string)
    return _on(said_on + timedelta(days=-back if past else ahead))


def _which_season(match: re.Match[str], said_on: date) -> Found:
    month = _SEASONS[match["season"].lower()]
    steps = _steps(match["which"])
    year = said_on.year + steps
    if steps < 0 and month + 2 < said_on.month:
        year = said_on.year
    if steps > 0 and month > said_on.month:
        year = said_on.year
    first, _, _ = _whole_month(year, month)
    _, last, _ = _whole_month(year, month + 2)
    return first, last, Grain.SEASON


def _bare_year(match: re.Match[str], said_on: date) -> Found:
    return _whole_year(int(match["year"]))


def _recent_days(match: re.Match[str], said_on: date) -> Found:
    return said_on - timedelta(days=6), said_on - timedelta(days=1), Grain.AROUND


_BACK = re.compile(
    r"\b(?:was|were|had|did|went|got|made|met|saw|took|came|bought|found|gave|lost|won|ran|left"
    r"|said|told|began|spent|\w{3,}ed)\b(?! to\b)",
    re.I,
)
_FORWARD = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|plan(?:s|ning)?|can't wait|looking forward|hope to)\b"
    r"|'ll\b",
    re.I,
)


def _looks_back(sentence: str) -> bool:
    """Return whether a sentence speaks of the past."""
    return bool(_BACK.search(sentence)) and not _FORWARD.search(sentence)


_TABLE: list[tuple[str, Reader, bool]] = [
    (rf"(?P<span>weekend|week) of {_MONTH} {_DAY}(?:,? {_YEAR})?", _week_of, False),
    (rf"(?:about|around) {_MONTH} {_DAY}(?:,? {_YEAR})?", _about, False),
    (rf"{_YEAR}-(?P<m>\d\d)-(?P<day>\d\d)", _iso_day, False),
    (rf"(?P<day>\d\d?)\.(?P<m>\d\d?)\.{_YEAR}", _iso_day, False),
    (rf"(?:the )?{_DAY}(?: of)? {_MONTH},? {_YEAR}", _absolute_day, False),
    (rf"{_MONTH} {_DAY},? {_YEAR}", _absolute_day, False),
    (rf"{_MONTH}(?: of)?,? {_YEAR}", _absolute_month, False),
    (rf"(?:the )?{_DAY}(?: of)? {_MONTH}", _day_of_month, True),
    (rf"{_MONTH} (?:the )?{_DAY}(?!\d|:|%)", _day_of_month, True),
    (r"(?:the )?day before yesterday", _shifted(-2), True),
    (r"(?:the )?day after tomorrow", _shifted(2), True),
    (r"yesterday(?: (?:morning|afternoon|evening|night))?|last night", _shifted(-1), True),
    (r"tomorrow(?: (?:morning|afternoon|evening|night))?", _shifted(1), True),
    (r"(?:earlier |later )?today|tonight|this (?:morning|afternoon|evening)", _shifted(0), True),
    (r"(?:the )?other (?:day|night)|(?:a )?few days (?:ago|back)", _recent_days, True),
    (rf"{_HEDGE}{_COUNT} (?P<unit>day|week|month|year)s? (?:ago|back|earlier)", _ago, True),
    (rf"(?:in|within) {_HEDGE}{_COUNT} (?P<unit>day|week|month|year)s?", _ahead, True),
    (rf"{_COUNT} (?P<unit>day|week|month|year)s? from (?:now|today)", _ahead, True),
    (r"(?:the )?week before last", lambda _, said_on: _week(said_on, -2), True),
    (r"(?:the )?weekend before last", lambda _, said_on: _weekend(said_on, -2), True),
    (r"over the weekend", lambda _, said_on: _weekend(said_on, -1), True),
    (rf"(?:the )?{_WHICH} (?P<unit>weekend|week|month|year)", _which_unit, True),
    (r"(?:on |at )?the weekend", lambda _, said_on: _weekend(said_on, 0), True),
    (rf"(?:on )?{_WHICH} {_WEEKDAY}", _which_weekday, True),
    (rf"(?P<which>on) {_WEEKDAY}", _which_weekday, True),
    (rf"(?:in )?{_WHICH} (?P<season>spring|summer|autumn|fall|winter)", _which_season, True),
    (
        rf"(?:{_PREPOSITION} )?(?P<which>last|next|this past|this) {_CAPITAL_MONTH}",
        _bare_month,
        True,
    ),
    (rf"{_PREPOSITION}(?P<which> (?!.))? {_CAPITAL_MONTH}", _bare_month, True),
    (rf"(?:in |since |until |back in )?{_YEAR}(?![\w%])", _bare_year, False),
]
_RULES = [(re.compile(rf"\b{pattern}\b", re.I), reader, rel) for pattern, reader, rel in _TABLE]
_HINT = re.compile(
    r"\d|day|night|week|month|year|morning|evening|afternoon|spring|summer|autumn|fall|winter"
    r"|tomorrow|\b(?:mon|tue|wed|thu|fri|sat|sun)|January|February|March|April|May|June|July|August|September|October|November"
    r"|December",
    re.I,
)
