"""Read the bullets of an observations block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo

from memory.engine.dates import parse_day
from memory.engine.listing import ARROW, CONTINUED, MARKS, UNDATED
from memory.engine.values import LineKind, WrittenLine

LONGEST_LINE = 10_000
LONGEST_SOURCES = 1_000

_DATE = re.compile(r"Date: *(?P<day>[^()*]{1,40})(?:\([^()]{0,40}\))?[ *]*", re.IGNORECASE)
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[*•-]|\d{1,3}[.)])[ \t]+(?=\S)")
_UNBULLETED = re.compile(rf"(?P<indent>[ \t]*)(?={'|'.join(MARKS.values())})")
_MARK = re.compile(rf"({'|'.join(MARKS.values())})\ufe0f?[ \t]*")
_TIME = re.compile(r"\((\d{1,2}):(\d{2})\)[ \t]*")
_ARROW = re.compile(r"(?:->|→)[ \t]*")
_SOURCE = r"#?\d{1,6}(?:[-–]#?\d{1,6})?"
_SOURCES = re.compile(rf"{_SOURCE}(?:, ?{_SOURCE})*")
_DECORATION = re.compile(r"#{1,6} .*|\*\*[^*]*\*\*:?|-{3,}|[*•-]|`{3}\w*")
_KINDS = {mark: kind for kind, mark in MARKS.items()}


@dataclass(slots=True)
class _Statement:
    """Hold a bullet as found; ``pieces`` make up its text, line ends included."""

    day: date | None
    indented: bool
    pieces: list[str]


@dataclass(frozen=True, slots=True)
class _Marks:
    """Hold what stands before the words of a statement."""

    kind: LineKind = LineKind.PLAIN
    clock: time | None = None
    arrow: bool = False


def written(lines: Iterable[str], tz: tzinfo, known: frozenset[int]) -> Iterator[WrittenLine]:
    """Yield the statements of a list, each with its kind, its time and its known sources.

    A statement below no date header, or below one of no real day, has no time. A sub point
    without a time of its own has its parent's.
    """
    parent: WrittenLine | None = None
    for statement in _statements(lines):
        line = _line(statement, parent, tz, known)
        if not line.text.removeprefix(ARROW).strip():
            continue
        if not line.text.startswith(ARROW):
            parent = line
        yield line


def is_list_line(line: str) -> bool:
    """Return whether a line is a bullet, or the header of the bullets below it."""
    return bool(_opening(line)) or _is_header(line)


def _opening(line: str) -> re.Match[str] | None:
    return _BULLET.match(line) or _UNBULLETED.match(line)


def _statements(lines: Iterable[str]) -> Iterator[_Statement]:
    day: date | None = None
    current: _Statement | None = None
    for line in lines:
        bullet = _opening(line)
        if bullet:
            if current:
                yield current
            current = _Statement(day, bool(bullet["indent"]), [line[bullet.end() :]])
        elif _is_header(line):
            day = _header_day(line)
        elif current and not _is_decoration(line):
            current.pieces.append(_continuation(line))
    if current:
        yield current


def _continuation(line: str) -> str:
    # At the margin a line goes on where the one above was wrapped; indented, it was written
    # as a line of its own.
    if line[0] not in " \t":
        return f" {line}"
    own = line.removeprefix(CONTINUED) if line.startswith(CONTINUED) else line.lstrip()
    return f"\n{own}"


def _is_decoration(line: str) -> bool:
    return not line.strip() or _DECORATION.fullmatch(line) is not None


def _is_header(line: str) -> bool:
    header = line.lstrip("#* ") if line[:1] in "#*" else line
    return header.rstrip("* ") == UNDATED or _DATE.fullmatch(header) is not None


def _header_day(line: str) -> date | None:
    match = _DATE.fullmatch(line.lstrip("#* "))
    return parse_day(match["day"].strip()) if match else None


def _line(
    statement: _Statement, parent: WrittenLine | None, tz: tzinfo, known: frozenset[int]
) -> WrittenLine:
    first, more, cites = _sourced(statement, known)
    marks, words = _marked(first)
    sub = marks.arrow or (
        parent is not None and statement.indented and marks.kind in (LineKind.PLAIN, LineKind.DONE)
    )
    text = _cut("\n".join([words, *more]).strip())
    if not sub:
        return WrittenLine(marks.kind, text, _said_at(statement.day, marks.clock, tz), cites)
    kind = LineKind.DONE if marks.kind is LineKind.DONE else LineKind.PLAIN
    said_at = _said_at(statement.day, marks.clock, tz)
    if parent and marks.clock is None:
        said_at = parent.said_at
    return WrittenLine(kind, f"{ARROW} {text}", said_at, cites)


def _marked(text: str) -> tuple[_Marks, str]:
    """Return what precedes the words, each mark at most once and in any order, and the words."""
    kind: LineKind | None = None
    clock: time | None = None
    arrow = False
    while True:
        if kind is None and (match := _MARK.match(text)):
            kind = _KINDS[match[1]]
        elif clock is None and (match := _TIME.match(text)) and (found := _clock(match)):
            clock = found
        elif not arrow and (match := _ARROW.match(text)):
            arrow = True
        else:
            return _Marks(kind or LineKind.PLAIN, clock, arrow), text
        text = text[match.end() :]


def _clock(match: re.Match[str]) -> time | None:
    hour, minute = int(match[1]), int(match[2])
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _said_at(day: date | None, clock: time | None, tz: tzinfo) -> datetime | None:
    return datetime.combine(day, clock or time(), tz) if day else None


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} … [truncated]"


def _sourced(
    statement: _Statement, known: frozenset[int]
) -> tuple[str, list[str], tuple[int, ...]]:
    """Return a statement without its citation, and the numbers cited.

    The citation ends the bullet's own line, or else the last line that continues it.
    """
    first, *more = "".join(statement.pieces).split("\n")
    text, sources = _split_sources(first)
    if sources or not more:
        return text, more, _numbers(sources, known)
    last, sources = _split_sources(more[-1])
    return first, [*more[:-1], last], _numbers(sources, known)


def _split_sources(text: str) -> tuple[str, str]:
    start = text.rfind("[#")
    sources = text[start + 2 : -1]
    if start < 0 or not text.endswith("]") or len(sources) > LONGEST_SOURCES:
        return text, ""
    if not _SOURCES.fullmatch(sources):
        return text, ""
    return text[:start].rstrip(), sources


def _numbers(sources: str, known: frozenset[int]) -> tuple[int, ...]:
    cited: set[int] = set()
    for source in filter(None, sources.split(",")):
        bounds = [int(number) for number in re.findall(r"\d+", source)]
        # Ranges are looked up, never counted out: 1-999999 costs no more than 1-2.
        cited.update(number for number in known if bounds[0] <= number <= bounds[-1])
    return tuple(sorted(cited))
