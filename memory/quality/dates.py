"""Find the days a text speaks of, whether it prints them or counts from its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from memory.quality.spans import Span, around, day, month, week, weekday, weekend, year

MONTHS = "january february march april may june july august september october november december"
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMERALS = "one two three four five six seven eight nine ten eleven twelve"
COUNTS = {word: number for number, word in enumerate(NUMERALS.split(), 1)} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "a few": 3,
    "several": 4,
}
SHIFTS = {"next": 1, "coming": 1, "this": 0}

_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(MONTHS.split(), 1)}
_WEEKDAY_NUMBERS = {name[:3]: number for number, name in enumerate(WEEKDAYS.split())}
# Names in full, or the short forms people write: Jan, Sept, Tues.
_SHORT = {"june": "june?", "july": "july?", "september": "sept?(?:ember)?", "may": "may"}
_PLACES = {
    "MONTH": "(?P<month>"
    + "|".join(_SHORT.get(name, f"{name[:3]}(?:{name[3:]})?") for name in MONTHS.split())
    + ")",
    "WEEKDAY": "(?P<weekday>(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?)",
    "COUNT": rf"(?P<count>\d+|{'|'.join(sorted(COUNTS, key=len, reverse=True))})",
    "UNIT": "(?P<unit>day|week|month|year)s?",
    "SEASON": f"(?P<season>{'|'.join(SEASONS)})",
    "DAY": r"(?P<day>\d{1,2})(?:st|nd|rd|th)?",
    "YEAR": r"(?P<year>\d{4})",
}
_PAST = re.compile(
    r"\b(?:was|were|had|went|won|got|did|made|met|saw|took|came|bought|found|gave|lost|ran|left"
    r"|finished|\w{3,}ed)\b(?! to\b)",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:will|'ll|going to|gonna|can't wait|planning|looking forward)\b", re.IGNORECASE
)
_HINT = re.compile(
    rf"\d|day|night|week|month|year|morning|evening|afternoon|tomorrow"
    rf"|{'|'.join(SEASONS)}|\b(?:{'|'.join((*_MONTH_NUMBERS, *_WEEKDAY_NUMBERS))})",
    re.IGNORECASE,
)

Resolve = Callable[[re.Match[str], date], Span]


@dataclass(frozen=True, slots=True)
class Mention:
    """Hold a phrase about time, where it stands, the days it means, and whether it prints them.

    What is ``relative`` needs the day of the text to be understood.
    """

    phrase: str
    at: int
    span: Span
    relative: bool


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    resolve: Resolve
    relative: bool


def mentions(text: str, at: date) -> list[Mention]:
    """Return what a text of a day says about time, what is most exact first."""
    if not _HINT.search(text):
        return []
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found: list[Mention] = []
    for mention in _candidates(plain, at):
        end = mention.at + len(mention.phrase)
        if all(end <= other.at or mention.at >= other.at + len(other.phrase) for other in found):
            found.append(mention)
    return found


def printed(text: str) -> list[Mention]:
    """Return the dates that a text prints in full, so that no day is needed to read them."""
    return [mention for mention in mentions(text, date(2000, 1, 1)) if not mention.relative]


def without(text: str, found: list[Mention]) -> str:
    """Return a text without the phrases found in it."""
    for mention in sorted(found, key=lambda mention: -mention.at):
        text = text[: mention.at] + text[mention.at + len(mention.phrase) :]
    return text


def month_number(name: str) -> int:
    """Return 1 to 12 for a month's name, which may be shortened."""
    return _MONTH_NUMBERS[name[:3].lower()]


def weekday_number(name: str) -> int | None:
    """Return 0 (Monday) to 6 for a weekday's name, None for any other word."""
    return _WEEKDAY_NUMBERS.get(name[:3].lower())


def _candidates(text: str, at: date) -> Iterator[Mention]:
    for rule in _RULES:
        for match in rule.pattern.finditer(text):
            try:
                span = rule.resolve(match, at)
            except (ValueError, OverflowError):
                continue  # The 31st of June, or a year beyond the calendar.
            yield Mention(match[0], match.start(), span, rule.relative)


def _date(match: re.Match[str], at: date) -> Span:
    """Return the day of a match with a day and a month; the year may be that of the text."""
    parts = match.groupdict()
    written = parts["month"]
    number = int(written) if written.isdigit() else month_number(written)
    return day(date(int(parts.get("year") or at.year), number, int(parts["day"])))


def _month(match: re.Match[str], at: date) -> Span:
    return month(int(match["year"]), month_number(match["month"]))


def _year(match: re.Match[str], at: date) -> Span:
    return year(int(match["year"]))


def _count(match: re.Match[str]) -> int:
    written = match["count"].lower()
    return int(written) if written.isdigit() else COUNTS[written]


def _away(at: date, count: int, unit: str) -> Span:
    """Return the days meant by so many units from a day, the vaguer the larger the unit."""
    if unit == "day":
        return day(at, count)
    if unit == "week":
        return around(at, count)
    if unit == "month":
        return month(at.year, at.month + count)
    if count in (-1, -2):
        return month(at.year + count, at.month - 2, through=4)
    return year(at.year + count)


def _ago(match: re.Match[str], at: date) -> Span:
    return _away(at, -_count(match), match["unit"].lower())


def _ahead(match: re.Match[str], at: date) -> Span:
    return _away(at, _count(match), match["unit"].lower())


def _neighbour(match: re.Match[str], at: date) -> Span:
    """Return last, this or next week, month or year."""
    shift, unit = SHIFTS.get(match["which"].lower(), -1), match["unit"].lower()
    if unit == "week":
        return week(at, shift)
    return month(at.year, at.month + shift) if unit == "month" else year(at.year + shift)


def _last_weekday(match: re.Match[str], at: date) -> Span:
    return weekday(at, _WEEKDAY_NUMBERS[match["weekday"][:3].lower()], ahead=False)


def _some_weekday(match: re.Match[str], at: date) -> Span:
    """Return the weekday ahead; the one before where the text tells of what has happened."""
    open_to_both = match["which"].lower() in ("on", "this")
    happened = open_to_both and _PAST.search(match.string) and not _FUTURE.search(match.string)
    return weekday(at, _WEEKDAY_NUMBERS[match["weekday"][:3].lower()], ahead=not happened)


def _season(match: re.Match[str], at: date) -> Span:
    which, first = match["which"].lower(), SEASONS[match["season"].lower()]
    # The last summer is this year's once that is over.
    shift = -1 if which == "last" and first + 2 >= at.month else SHIFTS.get(which, 0)
    return month(at.year + shift, first, through=2)


def _named_month(match: re.Match[str], at: date) -> Span:
    which, number = match["which"].lower(), month_number(match["month"])
    before = which in ("last", "this past") and number >= at.month
    after = which == "next" and number <= at.month
    return month(at.year + after - before, number)


def _rule(pattern: str, resolve: Resolve, *, relative: bool = True) -> _Rule:
    filled = re.sub(r"\b[A-Z]+\b", lambda place: _PLACES.get(place[0], place[0]), pattern)
    return _Rule(re.compile(rf"\b(?:{filled})\b", re.IGNORECASE), resolve, relative)


# In order: what an earlier rule has read, a later one does not read again.
_RULES = (
    _rule(r"YEAR-(?P<month>\d\d)-(?P<day>\d\d)", _date, relative=False),
    _rule(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.YEAR", _date, relative=False),
    _rule(r"DAY(?: of)? MONTH\.?,? YEAR", _date, relative=False),
    _rule(r"MONTH\.? DAY,? YEAR", _date, relative=False),
    _rule(r"MONTH,? YEAR", _month, relative=False),
    _rule(r"DAY(?: of)? MONTH", _date),
    _rule(r"MONTH DAY", _date),
    _rule(r"(?:the )?day before yesterday", lambda _, at: day(at, -2)),
    _rule(r"(?:the )?day after tomorrow", lambda _, at: day(at, 2)),
    _rule(r"yesterday|last night", lambda _, at: day(at, -1)),
    _rule(r"tomorrow", lambda _, at: day(at, 1)),
    _rule(r"(?:earlier )?today|tonight|this (?:morning|afternoon|evening)", lambda _, at: day(at)),
    _rule(r"the other day", lambda _, at: Span(day(at, -6).first, day(at, -1).last)),
    _rule(r"COUNT UNIT (?:ago|back|before|earlier)", _ago),
    _rule(r"(?:in|after) COUNT UNIT", _ahead),
    _rule(r"(?:the )?week before last", lambda _, at: week(at, -2)),
    _rule(r"(?:the )?weekend before last", lambda _, at: weekend(at, -2)),
    _rule(r"(?:last|past) weekend|over the weekend", lambda _, at: weekend(at, -1)),
    _rule(r"(?:this|the) weekend", lambda _, at: weekend(at)),
    _rule(r"next weekend", lambda _, at: weekend(at, 1)),
    _rule(r"(?P<which>last|previous|past|next|this|coming) (?P<unit>week|month|year)", _neighbour),
    _rule(r"(?:last|previous|past|this past) WEEKDAY", _last_weekday),
    _rule(r"(?P<which>next|this|coming|on) WEEKDAY", _some_weekday),
    _rule(r"(?P<which>last|next|this) SEASON", _season),
    _rule(r"(?P<which>last|this past|in|next|this) MONTH", _named_month),
    _rule(r"(?:in|since|from|until) (?P<year>(?:19|20)\d\d)", _year),
    _rule(r"(?P<year>(?:19|20)\d\d)", _year, relative=False),
)
