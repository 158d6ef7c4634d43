"""Find the sections of a model's reply.

Only a tag that begins a line opens or closes a section; the same tag inside a line is text.
Each pattern is tried once per line and moves only forward, so the time a reply takes grows
with its length and nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.engine.escape import TAGS
from memory.engine.values import HINTS

OBSERVATIONS = "observations"

_STRAY_TAG = re.compile(rf"</?(?:{'|'.join(TAGS)})(?![\w-])[^>]{{0,200}}>[ \t]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """Hold the lines of an observations block; one that never closes is not ``whole``."""

    lines: list[str]
    whole: bool


@dataclass(frozen=True, slots=True)
class Sections:
    """Hold a reply by section; ``rest`` is what belongs to none.

    ``hints`` also holds, by name, the further texts that were looked for.
    """

    hints: dict[str, str]
    blocks: list[Block]
    rest: list[str]


def sections(lines: Sequence[str], *, extract: tuple[str, ...] = ()) -> Sections:
    """Return the sections of a reply given line by line.

    Hints, and the further texts named in ``extract``, are taken out first, wherever they stand,
    so that a list in one never becomes an observation. The last of a name counts.
    """
    hints, others = _take_hints(lines, _section_tag(extract))
    blocks, rest = _take_blocks(others)
    return Sections(hints, blocks, rest)


def is_stray(line: str) -> bool:
    """Return whether a line is one of our tags and nothing else."""
    return _STRAY_TAG.fullmatch(line) is not None


@lru_cache(maxsize=64)
def _section_tag(extract: tuple[str, ...] = ()) -> re.Pattern[str]:
    names = "|".join(map(re.escape, (OBSERVATIONS, *HINTS, *extract)))
    return re.compile(rf"[ \t]*<(?P<close>/?)(?P<name>{names})[ \t]*>", re.IGNORECASE)


def _take_hints(lines: Sequence[str], tag: re.Pattern[str]) -> tuple[dict[str, str], list[str]]:
    """Return the hints by name, the last of each counting, and the lines outside them."""
    hints: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while at < len(lines):
        opening = tag.match(lines[at])
        if opening is None or opening["close"] or opening["name"].lower() == OBSERVATIONS:
            rest.append(lines[at])
            at += 1
            continue
        name = opening["name"].lower()
        text, at = _hint(lines, at, opening.end(), (name, tag))
        if text:
            hints[name] = text
    return hints, rest


def _hint(
    lines: Sequence[str], start: int, column: int, of: tuple[str, re.Pattern[str]]
) -> tuple[str, int]:
    """Return a hint's text and the index after it; one that never closes has no text."""
    name, tag = of
    closing = f"</{name}>"
    told: list[str] = []
    for at in range(start, len(lines)):
        line = lines[at][column if at == start else 0 :]
        if line.lower().endswith(closing):
            return "\n".join([*told, line[: -len(closing)]]).strip(), at + 1
        if at > start and tag.match(line):
            return "", at
        told.append(line)
    return "", len(lines)


def _take_blocks(lines: Sequence[str]) -> tuple[list[Block], list[str]]:
    """Return the observations blocks, and the lines outside them."""
    ends = [at for at, line in enumerate(lines) if _is_section(line, close="/")]
    blocks: list[Block] = []
    rest: list[str] = []
    at = 0
    while at < len(lines):
        if not _is_section(lines[at], close=""):
            rest.append(lines[at])
            at += 1
            continue
        block, at = _block(lines, at, ends)
        blocks.append(block)
    return blocks, rest


def _block(lines: Sequence[str], start: int, ends: Sequence[int]) -> tuple[Block, int]:
    opening = _section_tag().match(lines[start])
    first = lines[start][opening.end() :] if opening else ""
    closing = f"</{OBSERVATIONS}>"
    if first.lower().endswith(closing):
        return Block([first[: -len(closing)]], whole=True), start + 1
    following = bisect_left(ends, start + 1)
    whole = following < len(ends)
    end = ends[following] if whole else len(lines)
    body = [first, *lines[start + 1 : end]]
    kept = [line for line in body if line and not _STRAY_TAG.fullmatch(line)]
    return Block(kept, whole), end + 1


def _is_section(line: str, *, close: str) -> bool:
    match = _section_tag().match(line)
    return bool(match and match["name"].lower() == OBSERVATIONS and match["close"] == close)
