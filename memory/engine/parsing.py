"""Read what an Observer or a Reflector replied, or say why it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from textwrap import dedent

from memory.engine.degenerate import repetition
from memory.engine.escape import clean
from memory.engine.sections import Block, Sections, is_stray
from memory.engine.sections import sections as sections_of
from memory.engine.statements import is_list_line, written
from memory.engine.threads import Thread, threads
from memory.engine.values import (
    HINTS,
    LineKind,
    ObserverOutput,
    ReflectorOutput,
    SectionNumbers,
    WrittenLine,
)

EXCERPT = 80
SHORTEST_TITLE = 3

_NOTHING = re.compile(r"(?:[*-] *)?\(none\)\.?", re.IGNORECASE)


class BadOutput(ValueError):
    """Say what was wrong with a model's reply; ``problem`` is the end of a sentence about it."""

    def __init__(self, problem: str, reply: str) -> None:
        self.problem = problem
        excerpt = " ".join(clean(reply[: EXCERPT * 4]).split())[:EXCERPT]
        beginning = f", beginning “{excerpt}”" if excerpt else ""
        super().__init__(f"The reply {problem} ({len(reply)} characters{beginning}).")


class EmptyOutput(BadOutput):
    """Say that a reply holds nothing where it had to hold something."""


class UnparsableOutput(BadOutput):
    """Say that a reply holds text, but no observations."""


class DegenerateOutput(BadOutput):
    """Say that a reply repeats itself or never ends a line."""


def parse_observer(
    reply: str,
    *,
    tz: tzinfo,
    known: Collection[int],
    wanted: Collection[str] = HINTS,
    extract: Collection[str] = (),
) -> ObserverOutput:
    """Return what an Observer wrote; citations outside ``known`` are dropped.

    So are hints that are not ``wanted``; ``extract`` names the further texts to take out. Raises
    EmptyOutput, UnparsableOutput or DegenerateOutput. An explicit "(none)" is an output without
    lines, not a failure.
    """
    page = _read(reply, extract=tuple(extract))
    return _output(page, _lines(page, reply, tz, known), wanted)


def parse_observer_of(
    reply: str,
    *,
    tz: tzinfo,
    sections: Sequence[SectionNumbers],
    wanted: Collection[str] = HINTS,
    extract: Collection[str] = (),
) -> tuple[ObserverOutput | None, ...]:
    """Return what an Observer wrote about each of several threads, in the order of ``sections``.

    A thread that the reply leaves out, or says nothing readable about, is None: that thread's
    failure alone. A thread that had nothing to read has an output without lines. Raises
    EmptyOutput or DegenerateOutput, and UnparsableOutput when no thread can be read.
    """
    if not reply.strip():
        raise EmptyOutput("is empty", reply)
    pages = _pages(reply, sections, tuple(extract))
    if problem := repetition(_once(pages) if pages else reply):
        raise DegenerateOutput(problem, reply)
    found = [_section(pages.get(one.label.lower()), one, tz, wanted) for one in sections]
    asked = [output for output, one in zip(found, sections, strict=True) if one.numbers]
    if asked and not any(asked):
        raise UnparsableOutput("holds observations of none of the threads", reply)
    return tuple(found)


def parse_reflector(reply: str, *, tz: tzinfo, known: Collection[int]) -> ReflectorOutput:
    """Return what a Reflector wrote; citations outside ``known`` are dropped.

    Raises EmptyOutput, UnparsableOutput or DegenerateOutput. "(none)" is EmptyOutput: a
    reflection must not wipe what it was made from.
    """
    lines = _lines(_read(reply), reply, tz, known)
    if not lines:
        raise EmptyOutput("gives up every line it was to condense", reply)
    return ReflectorOutput(lines)


def _pages(
    reply: str, expected: Sequence[SectionNumbers], extract: tuple[str, ...]
) -> dict[str, Sections]:
    """Return the reply by thread. Where only one was asked for, its tag may be missing."""
    lines = _printable_lines(reply)
    told = threads(lines)
    only = [one.label.lower() for one in expected if one.numbers]
    if not told and len(only) == 1:
        return {only[0]: sections_of(lines, extract=extract)}
    pages: dict[str, Sections] = {}
    for thread in told:
        page = _page(thread, extract)
        known = pages.get(thread.label)
        pages[thread.label] = _joined(known, page) if known else page
    return pages


def _page(thread: Thread, extract: tuple[str, ...]) -> Sections:
    page = sections_of(thread.lines, extract=extract)
    if page.blocks:
        return page
    own = [line for line in page.rest if line and not is_stray(line)]
    return Sections(page.hints, [Block(own, thread.whole)], [])


def _joined(first: Sections, second: Sections) -> Sections:
    return Sections(first.hints | second.hints, [*first.blocks, *second.blocks], [])


def _once(pages: Mapping[str, Sections]) -> str:
    """Return what the pages say, each hint once: threads alike may have hints alike."""
    hints = {text for page in pages.values() for text in page.hints.values()}
    blocks = [block for page in pages.values() for block in page.blocks]
    return "\n".join([*(line for block in blocks for line in block.lines), *sorted(hints)])


def _section(
    page: Sections | None, of: SectionNumbers, tz: tzinfo, wanted: Collection[str]
) -> ObserverOutput | None:
    if not of.numbers:
        return ObserverOutput(())
    if page is None:
        return None
    try:
        return _output(page, _lines(page, "", tz, of.numbers), wanted)
    except BadOutput:
        return None


def _output(
    page: Sections, lines: tuple[WrittenLine, ...], wanted: Collection[str]
) -> ObserverOutput:
    told = (page.hints.get(name, "") if name in wanted else "" for name in HINTS)
    task, response, title = told
    title = title if len(title) >= SHORTEST_TITLE else ""
    extracted = {name: text for name, text in page.hints.items() if name not in HINTS}
    return ObserverOutput(lines, task, response, title, extracted)


def _read(reply: str, *, extract: tuple[str, ...] = ()) -> Sections:
    if not reply.strip():
        raise EmptyOutput("is empty", reply)
    if problem := repetition(reply):
        raise DegenerateOutput(problem, reply)
    return sections_of(_printable_lines(reply), extract=extract)


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
