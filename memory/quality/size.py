"""Estimate sizes in tokens by a rule of thumb that needs no tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

LONGEST_SHORT_WORD = 3
LETTERS_PER_TOKEN = 6
MARKS_PER_TOKEN = 2
NEW_LINE = 1
BULLET = 1

_PIECE = re.compile(
    r"""[.,!?;:(){}\[\]<>/\\|@#$%^&*+=`~_"'-]+|[^\s.,!?;:(){}\[\]<>/\\|@#$%^&*+=`~_"'-]+"""
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SPEAKER = re.compile(r"[^:;]{1,30}: ")


def estimate(text: str) -> int:
    """Return about how many tokens a text has."""
    return sum(map(_tokens, _PIECE.findall(text)))


def size_of_raw(said: Iterable[str], days: Iterable[date]) -> int:
    """Return the size of a whole conversation: one bulleted line a message, one heading a day."""
    lines = sum(estimate(text) + BULLET + NEW_LINE for text in said)
    return lines + sum(_heading(day) for day in days)


def size_of_lines(texts: Iterable[str], days: Iterable[date]) -> int:
    """Return the size of memory lines under headings; those that open with a name are bulleted."""
    lines = sum(
        estimate(text) + NEW_LINE + (BULLET if _SPEAKER.match(text) else 0) for text in texts
    )
    return lines + sum(_heading(day) for day in days)


def _heading(day: date) -> int:
    return estimate(f"Date: {day:%b %d, %Y}") + NEW_LINE


def _tokens(piece: str) -> int:
    unspaced = len(_UNSPACED.findall(piece))
    rest = _UNSPACED.sub("", piece) if unspaced else piece
    return unspaced + (_spaced(rest) if rest else 0)


def _spaced(piece: str) -> int:
    if piece.isdigit() or len(piece) <= LONGEST_SHORT_WORD:
        return 1
    per_token = LETTERS_PER_TOKEN if piece[0].isalnum() else MARKS_PER_TOKEN
    return -(-len(piece) // per_token)
