"""Rank a statement: what the user says of themselves first, small talk last."""

from __future__ import annotations

import re

from memory.offline.salience import LASTING

_DONE = re.compile(
    r"\b(?:(?:is|are|it's|that's|all|now|finally)"
    r" (?:done|finished|fixed|solved|complete|completed|resolved)"
    r"|(?:i|we|i've|we've|just) (?:finally )?"
    r"(?:finished|completed|submitted|shipped|fixed|solved|passed)"
    r"|that (?:worked|did it|fixed it)|works now)\b",
    re.I,
)
_PERSONAL = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|my|we|we're|we've|we'll|our)\b", re.I)
GOOD, FAIR = 0.3, 0.15
"""Worth from which a statement is of high and of medium priority."""


def kind_of(sentence: str, worth: float, speaker: str, dated: bool) -> str:
    """Return the kind of line a sentence makes."""
    if _DONE.search(sentence) and not sentence.rstrip().endswith("?"):
        return "done"
    if sentence.rstrip().endswith("?"):
        return "low"
    personal = speaker != "Assistant" and bool(_PERSONAL.search(sentence))
    if worth >= GOOD or (personal and worth >= FAIR and LASTING.search(sentence)):
        return "high"
    return "medium" if worth >= FAIR else "low"
