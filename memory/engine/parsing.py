"""Read what an Observer or a Reflector replied, or say why it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import tzinfo
from itertools import groupby
from textwrap import dedent

from memory.engine.degenerate import repetition
from memory.engine.escape import clean
from memory.engine.sections import HINTS, Block, Sections, sections
from memory.engine.statements import is_list_line, written
from memory.engine.values import LineKind, ObserverOutput, ReflectorOutput, WrittenLine

EXCERPT = 80

_NOTHING = re.compile(r"(?:[*-] *)?\(none\)\.?", re.IGNORECASE)


class BadOutput(ValueError):
    """Say what was wrong with a model's reply."""

    def __init__(self, problem: str, reply: str) -> None:
        excerpt = " ".join(clean(reply[: EXCERPT * 4]).split())[:EXCERPT]
        beginning = f", beginning “{excerpt}”" if excerpt else ""
        super().__init__(f"The reply {problem} ({len(reply)} characters{beginning}).")


class EmptyOutput(BadOutput):
    """Say that a reply holds nothing where it had to hold something."""


class UnparsableOutput(BadOutput):
    """Say that a reply holds text, but no observations."""


class DegenerateOutput(BadOutput):
    """Say that a reply repeats itself or never ends a line."""


def parse_observer(reply: str, *, tz: tzinfo, known: Collection[int]) -> ObserverOutput:
    """Return what an Observer wrote; citations outside ``known`` are dropped.

    Raises EmptyOutput, UnparsableOutput or DegenerateOutput. An explicit "(none)" is an
    output without lines, not a failure.
    """
    page = _read(reply)
    task, response, title = (page.hints.get(name, "") for name in HINTS)
    return ObserverOutput(_lines(page, reply, tz, known), task, response, title)


def parse_reflector(reply: str, *, tz: tzinfo, known: Collection[int]) -> ReflectorOutput:
    """Return what a Reflector wrote; citations outside ``known`` are dropped.

    Raises EmptyOutput, UnparsableOutput or DegenerateOutput. "(none)" is EmptyOutput: a
    reflection must not wipe what it was made from.
    """
    lines = _lines(_read(reply), reply, tz, known)
    if not lines:
        raise EmptyOutput("gives up every line it was to condense", reply)
    return ReflectorOutput(lines)


def _read(reply: str) -> Sections:
    if not reply.strip():
        raise EmptyOutput("is empty", reply)
    if problem := repetition(reply):
        raise DegenerateOutput(problem, reply)
    return sections(_printable_lines(reply))


def _printable_lines(reply: str) -> list[str]:
    # Only a newline ends a line: another separator inside a statement must not begin a
    # line that could then pass for a tag or a header.
    return [clean(line).replace("\n", " ").rstrip() for line in reply.split("\n")]


def _lines(
    page: Sections, reply: str, tz: tzinfo, known: Collection[int]
) -> tuple[WrittenLine, ...]:
    blocks = [block for block in page.blocks if any(block.lines)]
    if page.blocks and not blocks:
        raise EmptyOutput("has an empty observations block", reply)
    telling = [block for block in blocks if not _says_nothing(block)]
    if blocks and not telling:
        return ()
    read = written(_listed(telling, page.rest), tz, frozenset(known))
    # Small models repeat themselves before a reply is long enough to be degenerate.
    lines = tuple(line for line, _ in groupby(read))
    if not lines:
        raise UnparsableOutput("holds no list of observations", reply)
    if not telling and not any(_is_marked(line) for line in lines):
        raise UnparsableOutput("holds a list, but nothing that marks it as observations", reply)
    return lines


def _is_marked(line: WrittenLine) -> bool:
    return bool(line.cites or line.said_at or line.kind is not LineKind.PLAIN)


def _says_nothing(block: Block) -> bool:
    return _NOTHING.fullmatch(" ".join(block.lines).strip()) is not None


def _listed(blocks: Sequence[Block], rest: Sequence[str]) -> Iterator[str]:
    """Yield the lines that hold observations: of a block cut short or missing only its lists."""
    for block in blocks or [Block(list(rest), whole=False)]:
        lines = dedent("\n".join(block.lines)).split("\n")
        yield from (line for line in lines if block.whole or is_list_line(line))
