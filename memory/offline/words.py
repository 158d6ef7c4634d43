"""Tell words that carry content from words that only hold a sentence together."""

from __future__ import annotations

import re
from functools import lru_cache

import snowballstemmer

_STEMMER = snowballstemmer.stemmer("english")
_WORD = re.compile(r"[$€£]?[^\W_](?:[\w'’&+/-]*[^\W_])?(?:[.,:]\d+)*%?")

_NEGATIONS = "not no never none nothing nobody without neither nor cannot"

_ARTICLES = "a an the this that these those such some any each every either both all"
_PERSONS = """
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one ones who whom whose
i'm i've i'll i'd you're you've you'll you'd he's he'll he'd she's she'll she'd it's it'll it'd
we're we've we'll we'd they're they've they'll they'd that's that'll there's here's what's who's
where's how's when's let's y'all
"""
_HELPERS = """
am is are was were be been being do does did done doing have has had having will would shall
should can could may might must ought gonna wanna gotta
"""
_LINKS = """
and or but if then than so as of at by for with about into to from in on onto off over under up
down out upon along across through during toward towards between among within against per via
because since while although though unless until till whether when where why how what which
there here that's also too just really very well even still already yet again now today
"""
_GREETINGS = """
wow yeah yes yep yup hey hi hello oh ah aw aww haha hahaha lol omg thanks thank please okay ok
welcome congrats congratulations bye goodbye cheers sure totally absolutely definitely indeed
exactly agreed right nope hmm well gosh woah whoa ooh yay sorry anyway btw
"""
_PRAISE = """
awesome great cool nice amazing wonderful fantastic incredible lovely good glad happy excited
inspiring sweet beautiful gorgeous impressive proud brilliant terrific superb stunning excellent
perfect best better fun exciting thrilled pleased delighted grateful thankful appreciate
"""
_THINKING = """
think thought know knew known feel felt feels feeling guess believe suppose hope hoping wish
seem seems seemed mean means meant see saw seen look looks looked looking sound sounds hear
heard say says said tell tells told talk talked talking ask asked imagine realize wonder
remember love loved loves like liked likes enjoy enjoyed want wants wanted need needs needed
"""
_LIGHT_VERBS = """
get gets got getting gotten go goes going went gone come comes came coming make makes made making
take takes took taken taking give gives gave given giving keep keeps kept keeping put let lets
try tries tried trying start starts started starting help helps helped helping find finds found
finding bring brings brought use uses used using show shows showed work works
"""
_VAGUE = """
thing things something anything everything stuff lot lots bit kind sort type way ways time times
people person someone anyone everyone day days part little big much many more most few several
less least other others another same different new whole always ever often sometimes usually
maybe perhaps probably actually basically literally honestly truly especially simply super quite
pretty rather almost enough only back around away able important special sure real hard easy
recently lately currently soon later experience great makes worth
"""

NEGATIONS = frozenset(_NEGATIONS.split())
FUNCTION_WORDS = frozenset(f"{_ARTICLES} {_PERSONS} {_HELPERS} {_LINKS}".split()) - NEGATIONS
FILLER_WORDS = frozenset(f"{_GREETINGS} {_PRAISE}".split())
LIGHT_WORDS = frozenset(f"{_THINKING} {_LIGHT_VERBS} {_VAGUE}".split())

_NUMBER_NAMES = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {name: str(value) for value, name in enumerate(_NUMBER_NAMES.split())}


def words(text: str) -> list[str]:
    """Return the words of a text, in order, as written."""
    return _WORD.findall(text.replace("’", "'"))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the common stem of a word's forms; small number words become digits."""
    low = word.lower().strip("'").replace(",", "").removesuffix("'s")
    return _NUMBERS.get(low) or str(_STEMMER.stemWord(low))


@lru_cache(maxsize=65536)
def is_negative(word: str) -> bool:
    """Return whether a word denies what is said with it."""
    low = word.lower()
    return low in NEGATIONS or low.endswith("n't")


@lru_cache(maxsize=65536)
def weight(word: str) -> float:
    """Return how much a word says by itself, from 0 (nothing) to 1.5 (a name or number)."""
    low = word.lower()
    if low in FUNCTION_WORDS or low in FILLER_WORDS or low.endswith("n't"):
        return 0.0
    if low in LIGHT_WORDS or low in NEGATIONS:
        return 0.25
    if low[0].isdigit() or low[0] in "$€£":
        return 1.5
    return 1.3 if word[0].isupper() else 1.0


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    return [stem(word) for word in words(text) if weight(word) > 0]
