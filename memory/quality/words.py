"""Take the words out of a text that carry what it says, as stems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import snowballstemmer

PRONOUNS = """
    i me my mine you your yours he him his she her hers it its we us our ours they them their theirs
    this that these those who whom whose what which where when why how here there
"""
VERBS = """
    am is are was were be been being do does did doing have has had having
    can could will would shall should may might must get got go going went gone let make made
"""
LINKS = """
    a an the and or but if then so than as nor not no of at by for with about into to from in on off
    over under up down out
"""
FILLERS = """
    all any both each few more most other some such only own same too very just also really well
    much many lot lots bit like one thing things way please thank thanks ok okay oh wow hey hi hello
    yes yeah
"""
SHORTENED = """
    i'm i've i'll i'd you're you've you'll he's she's it's we're we've we'll they're that's let's
    isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't
"""
EMPTY = frozenset(" ".join((PRONOUNS, VERBS, LINKS, FILLERS, SHORTENED)).split())

NUMERALS = "zero one two three four five six seven eight nine ten eleven twelve"
DIGITS = {name: str(number) for number, name in enumerate(NUMERALS.split())}

# A word of any script, with inner apostrophes; a number keeps its point, colon or comma.
_WORD = re.compile(r"[^\W_][^\W_']*(?:'[^\W_]+)*(?:[.,:]\d+)*")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STEMMER = snowballstemmer.stemmer("english")


def words(text: str) -> list[str]:
    """Return the words of a text as they stand there."""
    return _WORD.findall(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def stems(text: str) -> list[str]:
    """Return the stems of all words that mean something, in order, repeated ones too."""
    return [stem for word in words(text) for stem in _stems_of(word)]


def _stems_of(word: str) -> Iterator[str]:
    if _UNSPACED.search(word):
        # Scripts without spaces: two neighbouring characters stand for a word.
        yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
    elif word.lower() not in EMPTY:
        yield _stem(word.lower())


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    bare = word.replace(",", "").removesuffix("'s")
    return DIGITS.get(bare) or str(_STEMMER.stemWord(bare))
