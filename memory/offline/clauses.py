"""Write a sentence as a telegram: who, what, where, when, how many; no filler."""

from __future__ import annotations

import re
from datetime import date

from memory.offline.dates import Moment, find_moments, spell
from memory.offline.words import FILLER_WORDS, FUNCTION_WORDS, is_negative

_GLUE = "\u00a0"
_TOKEN = re.compile(r"[$€£~]?[^\W_](?:[\w'&+/@.,:%$€£\u00a0-]*[\w%+])?")
_CAPTION = re.compile(
    r"^[\[(](?:(?:photo|image|picture)[:;] )?(?:a |an )?"
    r"(?:photo|photograph|photography|picture|image)"
    r"(?: of| showing)? (?:a |an |the )?|[\[(](?=[^\])]*[\])]$)",
    re.I,
)


def telegraph(
    clause: str,
    said_on: date,
    *,
    drop: frozenset[str] = frozenset(),
    names: frozenset[str] = frozenset(),
    year: int | None = None,
) -> str:
    """Return a clause without the words that say nothing, its dates made explicit.

    ``drop`` are further words to leave out and ``names`` people who are only being addressed.
    """
    text = _unaddressed(_CAPTION.sub("photo ", clause.replace("’", "'")), names)
    text = _explicit(text, said_on, year)
    kept = [_written(token) for token in _TOKEN.findall(text) if _keeps(token, drop)]
    return " ".join(kept).replace(_GLUE, " ")


def _explicit(text: str, said_on: date, year: int | None) -> str:
    for moment in reversed(find_moments(text, said_on)):
        written = _written_date(text, moment, year).replace(" ", _GLUE)
        text = f"{text[: moment.start]} {written} {text[moment.end :]}"
    return text


def _written_date(text: str, moment: Moment, year: int | None) -> str:
    return spell(moment, year)


def _unaddressed(text: str, names: frozenset[str]) -> str:
    """Return a text without the name of the person it is said to."""
    for name in names:
        text = re.sub(rf"(?:^|,\s*){re.escape(name)}(?=\s*[,.!?]|$)[,.!?]?\s*", " ", text)
    return text


def _keeps(token: str, drop: frozenset[str]) -> bool:
    low = token.lower()
    if is_negative(low) or _GLUE in token:
        return True
    return low not in FUNCTION_WORDS and low not in FILLER_WORDS and low not in drop


def _written(token: str) -> str:
    return "not" if token.lower().endswith("n't") else token
