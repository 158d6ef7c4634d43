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
LONGEST_COUNTED = 100_000
SAMPLES = 10
SAMPLE_CHARS = 4_000
_STATEMENT_ENDS = re.compile(r"(?<=[.!?;,]) ")


class Tokenizer(Protocol):
    """Count tokens as the model's provider does; no token is shorter than a byte."""

    def count(self, text: str) -> int:
        """Return how many tokens the text has."""
        ...

    def clip(self, text: str, limit: int) -> str:
        """Return the longest beginning of at most ``limit`` tokens, of whole characters."""
        ...


def fits(text: str, limit: int, tokenizer: Tokenizer) -> bool:
    """Return whether the text has at most ``limit`` tokens.

    A text far too long is not read to the end: that takes seconds for a megabyte.
    """
    if _surely_fits(text, limit):
        return True
    return not _surely_exceeds(text, limit) and tokenizer.count(text) <= limit


def size_of(text: str, tokenizer: Tokenizer) -> int:
    """Return how many tokens the text has; of a very long one an estimate from samples."""
    if len(text) <= LONGEST_COUNTED:
        return tokenizer.count(text)
    step = len(text) // SAMPLES
    pieces = [text[at * step : at * step + SAMPLE_CHARS] for at in range(SAMPLES)]
    return sum(map(tokenizer.count, pieces)) * len(text) // (SAMPLES * SAMPLE_CHARS)


def truncate(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the first ``limit`` tokens of the text, and how many it has in all."""
    if fits(text, limit, tokenizer):
        return text
    return _cut(text, limit, size_of(text, tokenizer), tokenizer)


def shorten(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the text in ``limit`` tokens: its two ends, and an outline of what is between."""
    if fits(text, limit, tokenizer):
        return text
    return condense(text, limit, max(size_of(text, tokenizer), limit + 1), tokenizer)


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
    left_out = max(size - tokenizer.count(head) - tokenizer.count(tail), 1)
    return f"{head}…\n[{left_out} tokens left out, among them:\n{outline}\n]\n…{tail}"


def condense_all(texts: Sequence[str], limit: int, tokenizer: Tokenizer) -> list[str]:
    """Return texts that together have about ``limit`` tokens, the long ones condensed alike."""
    if _surely_fits("\n".join(texts), limit):
        return list(texts)
    sizes = [_counted(text, limit, tokenizer) for text in texts]
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


def _counted(text: str, limit: int, tokenizer: Tokenizer) -> int:
    size = size_of(text, tokenizer)
    # An estimate must not let through what is too long whatever it holds.
    return max(size, limit + 1) if _surely_exceeds(text, limit) else size


def _surely_exceeds(text: str, limit: int) -> bool:
    return len(text) > max(limit * LONGEST_TOKEN, LONGEST_COUNTED)


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
