"""Write down what was recalled, within a number of tokens.

Lines of a text are indented below the message they belong to, so that no text can pass for
another message. A part shown in full comes last instead, as it is: all that follows is its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory.engine.escape import clean
from memory.engine.recall import KINDS, Refused
from memory.engine.shorten import LONGEST_TOKEN, Tokenizer
from memory.engine.values import Part, PartKind

BUDGET = 2_000
"""Tokens of one answer, all told."""

BASE: Final = {
    PartKind.USER: 100,
    PartKind.TEXT: 100,
    PartKind.CALL: 20,
    PartKind.RESULT: 20,
    PartKind.FAILURE: 20,
    PartKind.ATTACHMENT: 30,
}
"""Tokens of a part's text while others wait for room."""

TURNS: Final = (
    ("user", 200),
    ("text", BUDGET),
    ("result", BUDGET),
    ("call", 50),
    ("user", BUDGET),
    ("call", BUDGET),
)
"""Who is given the room that is left, up to how many tokens a part, one after another."""

LEVELS: Final = ((1.0, 12), (0.5, 12), (0.25, 6), (0.12, 3), (0.0, 0))
"""Shares of ``BASE`` and most parts of a message, tried in order until all fits."""

SPENT: Final = (1.0, 0.8, 0.5)
"""Shares of the room left that are tried: indented lines cost more than they are counted."""

CUT = "Parts with … are cut. cursor=<message> with part=<number of the part> shows one in full."

LONGEST_NAME = 60
TITLE_TOKENS = (40, 20, 8)
MARGIN = 24
"""Tokens kept back, because two texts joined may count a token more than they do apart."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Hold a part with its number in its message, from 1; an excerpt begins at ``start``."""

    number: int
    part: Part
    start: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """Hold one message to show: the parts asked for, of ``count`` visible ones.

    ``at`` is in the user's time zone. ``heading`` is a line that goes before the message.
    """

    position: int
    speaker: str
    at: datetime
    parts: tuple[Numbered, ...]
    count: int
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Hold messages in order, what stands above them, and whether there are more on each side."""

    messages: tuple[Said, ...]
    title: str
    notes: tuple[str, ...] = ()
    has_before: bool = False
    has_after: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """Hold one thread of the list; times are in the user's time zone."""

    id: str
    title: str
    first_at: datetime
    last_at: datetime
    messages: int
    is_current: bool


def visible_parts(parts: Sequence[Part]) -> tuple[Numbered, ...]:
    """Return the parts that can be shown, numbered; thinking, gaps and empty parts are none."""
    shown = [part for part in parts if part.kind in BASE and _says(part)]
    return tuple(Numbered(number, part) for number, part in enumerate(shown, 1))


def matching(parts: Sequence[Numbered], part_kind: str, tool: str) -> tuple[Numbered, ...]:
    """Keep the parts of a kind and of a tool; an unknown kind or an empty tool keeps all."""
    kinds = KINDS.get(part_kind, frozenset(PartKind))
    name = tool.strip().casefold()
    return tuple(
        one for one in parts if one.part.kind in kinds and name in ("", one.part.tool.casefold())
    )


def excerpt(one: Numbered, words: Sequence[str], *, before: int = 80) -> Numbered:
    """Begin a part a little before the first of the words it holds."""
    text = clean(one.part.text)
    hits = (re.search(re.escape(word), text, re.IGNORECASE) for word in words)
    first = min((hit.start() for hit in hits if hit), default=0)
    if first <= before:
        return one
    # A word cut in two reads like another word.
    blank = text.find(" ", first - before, first)
    return replace(one, start=blank + 1 if blank >= 0 else first - before)


def write_page(page: Page, tokenizer: Tokenizer, budget: int = BUDGET) -> str:
    """Return a page of messages in at most ``budget`` tokens, each part as long as there is room.

    No message is left out: when there are many, their parts are shorter.
    """
    written = ""
    for share, most in LEVELS:
        rooms = _rooms(page, share, most)
        written = _written(page, rooms, most, tokenizer)
        size = tokenizer.count(written)
        if size <= budget:
            return _filled(page, rooms, most, budget, budget - size - MARGIN, tokenizer) or written
    return tokenizer.clip(written, budget)


def write_part(
    said: Said,
    one: Numbered,
    offset: int,
    tokenizer: Tokenizer,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    onward: str = "",
    budget: int = BUDGET,
) -> str:
    """Return one part from ``offset`` characters on, as much as fits, and how to go on.

    ``onward`` tells what comes after the part, for when all of it fits. Raises Refused when
    the offset is past the end.
    """
    text = clean(one.part.text)
    if offset and offset >= len(text):
        raise Refused(
            f"offset is {offset}, but part {one.number} of message {said.position} has "
            f"{len(text)} characters. Leave offset out to read it from the start."
        )
    who = f"[{said.position}] {said.speaker} ({_when(said.at)})"
    place = f"{who}, part {one.number} of {said.count}: {_label(one.part) or 'text'}"
    head = "\n".join([*([title] if title else []), *notes, place])
    room = budget - tokenizer.count(head) - 3 * MARGIN
    piece = _beginning(text[offset:], max(room, 1), tokenizer)
    end = offset + len(piece)
    if end < len(text):
        onward = f"To go on: cursor={said.position}, part={one.number}, offset={end}."
    span = f"Characters {offset} to {end} of {len(text)}. {onward}".rstrip()
    return tokenizer.clip(f"{head}\n{span}\n\n{piece}", budget)


def write_threads(
    threads: Sequence[Listed], header: str, tokenizer: Tokenizer, budget: int = BUDGET
) -> str:
    """Return the list of threads in at most ``budget`` tokens."""
    written = header
    for room in TITLE_TOKENS:
        lines = [_listed(thread, room, tokenizer) for thread in threads]
        written = "\n".join([header, *lines])
        if tokenizer.count(written) <= budget:
            return written
    return tokenizer.clip(written, budget)


def one_line(text: str, room: int, tokenizer: Tokenizer) -> str:
    """Return the text on one line, in at most ``room`` tokens and a mark where it was cut."""
    flat = re.sub(r"\s+", " ", clean(text)).strip()
    short = _beginning(flat, room, tokenizer)
    return short if short == flat else f"{short.rstrip()}…"


Rooms = dict[tuple[int, int], int]


def _rooms(page: Page, share: float, most: int) -> Rooms:
    return {
        (index, one.number): int(BASE[one.part.kind] * share)
        for index, said in enumerate(page.messages)
        for one in said.parts[:most]
    }


def _filled(
    page: Page, rooms: Rooms, most: int, budget: int, spare: int, tokenizer: Tokenizer
) -> str:
    """Return the page with the spare tokens used, or nothing when that does not fit."""
    for share in SPENT:
        wider = _expanded(page, rooms, most, int(spare * share), tokenizer)
        written = _written(page, wider, most, tokenizer)
        if tokenizer.count(written) <= budget:
            return written
    return ""


def _expanded(page: Page, rooms: Rooms, most: int, spare: int, tokenizer: Tokenizer) -> Rooms:
    """Give the spare tokens to parts that are cut, by kind, the earlier message first."""
    wider = dict(rooms)
    for kind, ceiling in TURNS:
        for index, said in enumerate(page.messages):
            for one in said.parts[:most]:
                key = (index, one.number)
                if spare > 0 and one.part.kind in KINDS[kind] and wider[key] < ceiling:
                    more = _more(one, wider[key], min(ceiling, wider[key] + spare), tokenizer)
                    wider[key] += more
                    spare -= more
    return wider


def _more(one: Numbered, room: int, ceiling: int, tokenizer: Tokenizer) -> int:
    text = _indented(clean(one.part.text)[one.start : one.start + ceiling * LONGEST_TOKEN], 4)
    return max(min(tokenizer.count(text), ceiling) - room, 0)


def _written(page: Page, rooms: Rooms, most: int, tokenizer: Tokenizer) -> str:
    cut = False
    blocks = []
    for index, said in enumerate(page.messages):
        shown = [(one, rooms[index, one.number]) for one in said.parts[:most]]
        block, was_cut = _message(said, shown, tokenizer)
        blocks.append(block)
        cut = cut or was_cut
    above = "\n".join([page.title, *_around(page), *page.notes, *([CUT] if cut else [])])
    return "\n\n".join([above, *blocks])


def _around(page: Page) -> list[str]:
    if not page.messages:
        return []
    first, last = page.messages[0].position, page.messages[-1].position
    told = []
    if page.has_before:
        told.append(f"There are more before: cursor={first}, page=-1.")
    if page.has_after:
        told.append(f"There are more after: cursor={last}, page=1.")
    return [" ".join([*told, "Leave the rest as it was."])] if told else []


def _message(
    said: Said, shown: Sequence[tuple[Numbered, int]], tokenizer: Tokenizer
) -> tuple[str, bool]:
    """Return a message as text, and whether any of it is left out."""
    head = f"[{said.position}] {said.speaker} ({_when(said.at)}):"
    if said.heading:
        head = f"{said.heading}\n{head}"
    texts = [_part(one, room, tokenizer) for one, room in shown]
    hidden = len(said.parts) - len(shown)
    cut = hidden > 0 or any(left for _, left in texts)
    if said.count == 1 and texts:
        return f"{head} {_indented(texts[0][0], 2)}", cut
    lines = [
        f"  ({one.number}) {_indented(text, 4)}"
        for (one, _), (text, _) in zip(shown, texts, strict=True)
    ]
    if hidden:
        lines.append(f"  … {hidden} more, from part={said.parts[len(shown)].number}")
    return "\n".join([head, *lines]), cut


def _part(one: Numbered, room: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Return the text of a part, and how many characters of it are left out."""
    text = clean(one.part.text)[one.start :]
    shown = _beginning(text, room, tokenizer)
    left = len(text) - len(shown)
    told = f"{'…' if one.start else ''}{shown}" + (f"… [{left} more characters]" if left else "")
    return f"{_label(one.part)} {told}".strip(), left + one.start


def _says(part: Part) -> bool:
    # Just what makes the text that messages are found by not empty.
    names_tool = part.kind is not PartKind.ATTACHMENT and bool(part.tool.strip())
    return names_tool or bool(part.text.strip())


def _label(part: Part) -> str:
    tool = _name(part.tool)
    match part.kind:
        case PartKind.CALL:
            return f"called {tool}"
        case PartKind.RESULT:
            return f"{tool} returned:"
        case PartKind.FAILURE:
            return f"{tool} failed:"
        case PartKind.ATTACHMENT:
            return f"attached {_name(part.media_type)}".strip()
        case _:
            return ""


def _name(text: str) -> str:
    return re.sub(r"\s+", " ", clean(text))[:LONGEST_NAME]


def _listed(thread: Listed, room: int, tokenizer: Tokenizer) -> str:
    title = one_line(thread.title, room, tokenizer) or "New conversation"
    first, last = f"{thread.first_at:%Y-%m-%d}", f"{thread.last_at:%Y-%m-%d}"
    when = first if first == last else f"{first} to {last}"
    count = "1 message" if thread.messages == 1 else f"{thread.messages} messages"
    mark = ", this conversation" if thread.is_current else ""
    return f"- “{title}”, {when}, {count}{mark}\n  thread={thread.id}"


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _indented(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _beginning(text: str, limit: int, tokenizer: Tokenizer) -> str:
    # Hardly a token is longer than this, and reading a megabyte to keep a page takes seconds.
    return tokenizer.clip(text[: limit * LONGEST_TOKEN], limit) if limit else ""
