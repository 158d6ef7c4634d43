"""Check what a recall asks for, find the page it means, and say when recalling pays.

A position is a message's number in its thread. A page is counted from a cursor, which it never
holds itself, or from an end of the range asked for; it reads in order whichever way it is counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from memory.engine.values import PartKind

NAME = "recall"
MOST_PAGES = 50
MOST_MESSAGES = 20
MOST_WORDS = 50
LONGEST_WORD = 100
SHORTEST_WORD = 3
LONGEST_NAMED = 80

ANY = "any"
CURRENT = "current"
EVERY_THREAD = "all"

KINDS: dict[str, frozenset[PartKind]] = {
    "user": frozenset({PartKind.USER}),
    "text": frozenset({PartKind.TEXT}),
    "call": frozenset({PartKind.CALL}),
    "result": frozenset({PartKind.RESULT, PartKind.FAILURE}),
    "attachment": frozenset({PartKind.ATTACHMENT}),
}
"""The kinds of parts that can be asked for; thinking is never shown."""


class Mode(StrEnum):
    """Name what is recalled: messages, the list of threads, or messages that hold words."""

    MESSAGES = "messages"
    THREADS = "threads"
    WORDS = "words"


class Refused(ValueError):
    """Say in a sentence why nothing is recalled, and what to ask instead."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold what one recall asks for, as a model gave it.

    ``first`` and ``last`` are the ends of a range of positions, ``cursor`` a position pages are
    counted from, ``part`` a number within that message, from 1, ``offset`` characters into it.
    """

    mode: str = Mode.MESSAGES
    query: str = ""
    first: int | None = None
    last: int | None = None
    cursor: int | None = None
    thread: str = CURRENT
    anchor: str = "start"
    page: int = 1
    limit: int = MOST_MESSAGES
    detail: str = "low"
    part: int | None = None
    part_kind: str = ANY
    tool: str = ""
    offset: int = 0
    before: str = ""
    after: str = ""

    @property
    def names_part(self) -> bool:
        """Return whether a part is asked for, or the rest of one."""
        return self.part is not None or self.offset > 0

    @property
    def is_whole(self) -> bool:
        """Return whether one part is to be shown in full."""
        return self.names_part or self.detail == "high"

    @property
    def is_filtered(self) -> bool:
        """Return whether only some parts are wanted."""
        return self.part_kind != ANY or bool(self.tool.strip())


@dataclass(frozen=True, slots=True)
class Window:
    """Hold where a page lies: positions ``low..high`` in an order, ``skip`` of them left out."""

    low: int
    high: int
    backwards: bool
    skip: int
    take: int


@dataclass(frozen=True, slots=True)
class Period:
    """Hold a span of time: from ``start`` on, up to and without ``end``; None is open."""

    start: datetime | None = None
    end: datetime | None = None


def check(asked: Asked) -> None:
    """Raise Refused when a value is none of those that can be asked for."""
    _one_of("mode", asked.mode, [mode.value for mode in Mode])
    _one_of("anchor", asked.anchor, ["start", "end"])
    _one_of("detail", asked.detail, ["low", "high"])
    _one_of("part_kind", asked.part_kind, [ANY, *KINDS])
    if abs(asked.page) > MOST_PAGES:
        raise Refused(
            f"page is {_named(asked.page)}, but it goes from -{MOST_PAGES} to {MOST_PAGES}. "
            "Go on from the last position shown: give it as cursor, with page=1."
        )
    if not 1 <= asked.limit <= MOST_MESSAGES:
        raise Refused(
            f"limit is {_named(asked.limit)}, but it goes from 1 to {MOST_MESSAGES}. "
            "Ask for more with page."
        )
    if asked.offset < 0:
        raise Refused(f"offset is {_named(asked.offset)}, but it counts characters from 0.")
    if mode_of(asked) is Mode.MESSAGES:
        _check_messages(asked)


def range_in(text: str) -> tuple[int, int] | None:
    """Return the ends of a range written as one text, as in ``12-37``; None when it is none."""
    found = _RANGE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def mode_of(asked: Asked) -> Mode:
    """Return the mode meant: a query without a place can only mean words."""
    places = (asked.first, asked.last, asked.cursor)
    if asked.mode == Mode.MESSAGES and asked.query.strip() and places == (None, None, None):
        return Mode.WORDS
    return Mode(asked.mode)


def check_place(asked: Asked, last_position: int) -> None:
    """Raise Refused when a position lies outside the thread, or a page has nothing to start from.

    A range only has to touch the thread.
    """
    low, high = ends(asked, last_position)
    if asked.cursor is not None and not 1 <= asked.cursor <= last_position:
        raise _outside(asked.cursor, last_position)
    if high < 1 or low > last_position:
        raise _outside(high if high < 1 else low, last_position)
    if asked.page < 0 and asked.cursor is None:
        raise Refused(
            f"page is {asked.page}, but pages before something need a position to count from. "
            'Give one as cursor, or begin at the end with anchor="end".'
        )


def ends(asked: Asked, last_position: int) -> tuple[int, int]:
    """Return the lowest and highest position asked for; one end given means one message."""
    if asked.first is None and asked.last is None:
        return 1, max(last_position, 1)
    first = asked.first if asked.first is not None else asked.last
    last = asked.last if asked.last is not None else asked.first
    assert first is not None
    assert last is not None
    return min(first, last), max(first, last)


def window(asked: Asked, last_position: int) -> Window:
    """Return where the page asked for lies, in a thread of so many positions."""
    low, high = ends(asked, last_position)
    low, high = max(low, 1), min(high, last_position)
    page = asked.page or 1
    backwards = asked.anchor == "end"
    if asked.cursor is not None:
        backwards = page < 0
        low = low if backwards else max(low, asked.cursor + 1)
        high = min(high, asked.cursor - 1) if backwards else high
    take = 1 if asked.is_whole else asked.limit
    return Window(low, high, backwards, (abs(page) - 1) * take, take)


def words_of(query: str) -> list[str]:
    """Return the words to look for, in lower case, once each. Raises Refused when there are none.

    A model may ask for anything, and databases bound a pattern's length and a condition's depth.
    """
    found = (word.lower()[:LONGEST_WORD] for word in query.split())
    words = list(dict.fromkeys(word for word in found if len(word) >= SHORTEST_WORD))
    if not words:
        raise Refused(
            f"There is nothing to look for: give words of {SHORTEST_WORD} letters or more as query."
        )
    return words[:MOST_WORDS]


def period(asked: Asked, zone: tzinfo) -> Period:
    """Return the span of time between ``after`` and ``before``. Raises Refused.

    A date without a time is its midnight in the zone; ``after`` takes its day in, ``before``
    leaves its day out.
    """
    start = _moment("after", asked.after, zone)
    end = _moment("before", asked.before, zone)
    if start and end and start >= end:
        raise Refused(
            f"Nothing lies after {_named(asked.after)} and before {_named(asked.before)}: "
            "before must be the later date, and its own day is left out."
        )
    return Period(start, end)


def speaker(kinds: Sequence[PartKind], *, by_model: bool) -> str:
    """Return who a message is from, told from the kinds of its parts."""
    if by_model:
        return "Assistant"
    returned = {PartKind.RESULT, PartKind.FAILURE}
    # What a tool returned may bring files along.
    only_tools = returned & set(kinds) and PartKind.USER not in kinds
    return "Tools" if only_tools else "User"


GUIDANCE = """\
The observations leave things out. Numbers of messages beside them, as in "messages 12-37", are \
positions: recall brings those messages back as they were said.
- Recall when exact words, code, links, figures or lists are wanted, when an observation only \
touches on what you need, or before you say that you do not know. Do not recall what the \
observations answer already.
- Give the ends of the range as first and last. Go on with cursor=<position> and page=1, go back \
with page=-1. Long parts come cut: cursor=<position> with part=<number> shows one in full.
- Without a range, mode="words" with a query looks for messages that hold any of its words."""

OTHERS = """\
- Positions belong to one conversation. mode="threads" lists the others with their dates; give an \
id from there as thread."""

NO_OTHERS = "- Only this conversation can be recalled."


def guidance(scope: str, instructions: str = "") -> str:
    """Return what the Actor is told about recalling, ``instructions`` of its owner at the end."""
    told = [GUIDANCE, OTHERS if scope == "resource" else NO_OTHERS]
    if instructions.strip():
        told.append(instructions.strip())
    return "\n".join(told)


_RANGE = re.compile(r"\s*(\d{1,18})\s*(?:[-–:]|to)\s*(\d{1,18})\s*")


def _check_messages(asked: Asked) -> None:
    if asked.before.strip() or asked.after.strip():
        raise Refused(
            'before and after go with mode="threads" or mode="words". '
            "Messages are asked for by position."
        )
    if asked.thread.strip() == EVERY_THREAD:
        raise Refused(
            f'thread="{EVERY_THREAD}" goes with mode="words". '
            'Read one conversation at a time; mode="threads" lists them.'
        )


def _one_of(field: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise Refused(f"{field} is {_named(value)}, but it is one of: {', '.join(known)}.")


def _outside(position: int, last_position: int) -> Refused:
    return Refused(
        f"Position {_named(position)} is outside this conversation, whose messages have the "
        f"positions 1 to {last_position}. Check which conversation the position belongs to."
    )


def _moment(field: str, text: str, zone: tzinfo) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        # Databases and time zones need room on both sides.
        moment - timedelta(days=2), moment + timedelta(days=2)
    except (ValueError, OverflowError):
        raise Refused(
            f"{field} is {_named(text)}, which is no date. Write it as 2026-03-31."
        ) from None
    return moment


def _named(value: object) -> str:
    text = re.sub(r"\s+", " ", str(value))
    return repr(text) if len(text) <= LONGEST_NAMED else f"{text[:LONGEST_NAMED]!r}…"
