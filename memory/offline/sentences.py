"""Split what somebody wrote into sentences, leaving out what is not prose."""

from __future__ import annotations

import re

LONGEST = 600
"""Characters of one sentence that are read; text without full stops is cut there."""

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_END = re.compile(
    r"(?<=[.!?…])[\"')\]*]*\s+(?=[^a-z])|(?<=[a-z)][!?])\s+|\n+|(?<=[\u3002\uff01\uff1f])"
    r"|\s+(?=\[)|(?<=\])\s+|(?<=\w)\s+(?:-|\u2013|\u2014)\s+"
)
_ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|vs|etc|e\.g|i\.e|No|Prof|Jr|Sr|approx)\.$")
_MARKUP = re.compile(r"^\s*(?:[-*+•>#|]+|\d+[.)])\s+|\*\*|__|`")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without code blocks and list marks."""
    pieces: list[str] = []
    prose = _FENCE.sub("\n", text)
    for piece in (part for line in prose.split("\n") for part in _END.split(_MARKUP.sub("", line))):
        clean = piece.strip()
        if not clean:
            continue
        if pieces and _ABBREVIATION.search(pieces[-1]):
            pieces[-1] = f"{pieces[-1]} {clean}"
        else:
            pieces.append(clean)
    return [piece[:LONGEST] for piece in pieces]
