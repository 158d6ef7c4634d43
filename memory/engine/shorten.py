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
    """Return whether the text has at most ``limit`` tokens, counting only when it must."""
    if len(text) <= limit and len(text.encode("utf-8", "replace")) <= limit:
        return True
    return tokenizer.count(text) <= limit


def truncate(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the first ``limit`` tokens of the text, and how many it has in all."""
    if fits(text, limit, tokenizer):
        return text
    total = tokenizer.count(text)
    return f"{tokenizer.clip(text, limit)}… [truncated, {total} tokens in all]"


def condense(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return head and tail of the text in ``limit`` tokens, between them an outline of the rest."""
    if fits(text, limit, tokenizer):
        return text
    if limit < SMALLEST_OUTLINE:
        return truncate(text, max(limit - MARKER_TOKENS, 0), tokenizer)
    head = tokenizer.clip(text, limit * 60 // 100)
    tail = _ending(text[len(head) :], limit * 25 // 100, tokenizer)
    middle = text[len(head) : len(text) - len(tail)]
    outline = tokenizer.clip(_outline(middle), limit * 7 // 100)
    return (
        f"{head}…\n[{tokenizer.count(middle)} tokens left out, among them:\n{outline}\n]\n…{tail}"
    )


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


def _ending(text: str, limit: int, tokenizer: Tokenizer) -> str:
    # Tokenizers clip only from the front; an eighth less each time soon fits.
    ending = text[-limit * 6 :]
    while ending and not fits(ending, limit, tokenizer):
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
