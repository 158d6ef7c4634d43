"""Shorten texts to a number of tokens, saying what was left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

LANDMARKS = 12
LANDMARK_CHARS = 80
SMALLEST_OUTLINE = 200
"""Below this many tokens a text is only cut: an outline would take most of the room."""

MARKER_TOKENS = 16
LONGEST_TOKEN = 16
_STATEMENT_ENDS = re.compile(r"(?<=[.!?;,]) ")


class Tokenizer(Protocol):
    """Count tokens as the model's provider does; no token is shorter than a byte."""

    def count(self, text: str) -> int:
        """Return how many tokens the text has."""
        ...

    def clip(self, text: str, limit: int) -> str:
        """Return the longest beginning of at most ``limit`` tokens, of whole characters."""
        ...


def truncate(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the first ``limit`` tokens of the text, and how many it has in all."""
    if _surely_fits(text, limit):
        return text
    size = tokenizer.count(text)
    return text if size <= limit else _cut(text, limit, size, tokenizer)


def condense(text: str, limit: int, size: int, tokenizer: Tokenizer) -> str:
    """Return head and tail of the text in ``limit`` tokens, between them an outline of the rest.

    ``size`` is the number of tokens the text has.
    """
    if size <= limit:
        return text
    if limit < SMALLEST_OUTLINE:
        return _cut(text, max(limit - MARKER_TOKENS, 0), size, tokenizer)
    head = _beginning(text, limit * 60 // 100, tokenizer)
    tail = _ending(text[len(head) :], limit * 25 // 100, tokenizer)
    outline = _beginning(
        _outline(text[len(head) : len(text) - len(tail)]), limit * 7 // 100, tokenizer
    )
    left_out = size - tokenizer.count(head) - tokenizer.count(tail)
    return f"{head}…\n[{left_out} tokens left out, among them:\n{outline}\n]\n…{tail}"


def condense_all(texts: Sequence[str], limit: int, tokenizer: Tokenizer) -> list[str]:
    """Return texts that together have about ``limit`` tokens, the long ones condensed alike."""
    if _surely_fits("\n".join(texts), limit):
        return list(texts)
    sizes = [tokenizer.count(text) for text in texts]
    return [
        condense(text, share, size, tokenizer)
        for text, share, size in zip(texts, shares(sizes, limit), sizes, strict=True)
    ]


def shares(sizes: Sequence[int], limit: int) -> list[int]:
    """Return how much of ``limit`` each size may take: small ones all they need, the rest alike."""
    left = limit
    level = 0
    for rank, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - rank)
        if size > level:
            break
        left -= size
        level = size
    return [min(size, level) for size in sizes]


def _surely_fits(text: str, limit: int) -> bool:
    return len(text) <= limit and len(text.encode("utf-8", "replace")) <= limit


def _cut(text: str, limit: int, size: int, tokenizer: Tokenizer) -> str:
    return f"{_beginning(text, limit, tokenizer)}… [truncated, {size} tokens in all]"


def _beginning(text: str, limit: int, tokenizer: Tokenizer) -> str:
    # Hardly a token is longer than this, and reading a megabyte to keep a page takes seconds.
    return tokenizer.clip(text[: limit * LONGEST_TOKEN], limit)


def _ending(text: str, limit: int, tokenizer: Tokenizer) -> str:
    # Tokenizers clip only from the front; an eighth less each time soon fits.
    ending = text[-limit * 6 :]
    while ending and tokenizer.count(ending) > limit:
        ending = ending[len(ending) // 8 + 1 :]
    return ending


def _outline(text: str) -> str:
    statements = [line.strip() for line in text.split("\n") if line.strip()]
    # The first was cut where the head ends.
    statements = statements[1:]
    if len(statements) < LANDMARKS:
        statements = [part.strip() for part in _STATEMENT_ENDS.split(text)[1:] if part.strip()]
    headings = [line for line in statements if line.startswith("#")]
    return "\n".join(f"- {_landmark(line)}" for line in _sample(headings or statements))


def _sample(lines: Sequence[str]) -> list[str]:
    if len(lines) <= LANDMARKS:
        return list(lines)
    return [lines[index * len(lines) // LANDMARKS] for index in range(LANDMARKS)]


def _landmark(line: str) -> str:
    return line if len(line) <= LANDMARK_CHARS else f"{line[:LANDMARK_CHARS].rstrip()}…"
