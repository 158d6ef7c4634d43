"""Score how much a sentence is worth remembering, by rules set by hand."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from memory.offline.words import FILLER_WORDS, FUNCTION_WORDS, LIGHT_WORDS, stem, words

_FIRST = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|my|me|mine|we|we're|we've|we'll|our|us)\b", re.I)
_SECOND = re.compile(r"\b(?:you|you're|you've|you'll|your|yours)\b", re.I)
_NAME = re.compile(r"(?<=[\w,;'] )[A-Z][\w'&-]*(?: (?:[A-Z][\w'&-]*|of|the))*")
_QUOTED = re.compile(r"[\"“”][^\"“”]{2,}[\"“”]")
_NUMBER = re.compile(
    r"[$€£]?\d[\d.,:]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand"
    r"|first|second|third|twice|once|half)\b",
    re.I,
)
_CODE = re.compile(r"[{}=<>;_|\\#*\[\]]")
LASTING = re.compile(
    r"\b(?:my name|call me|i live|i work as|my job|i was born|my birthday|i'?m allergic|allergic to"
    r"|i(?: would|'d)? prefer|i can't stand|my (?:deadline|budget|address|phone|email))\b",
    re.I,
)
"""Find what a person says of themselves that stays true, or holds until they say otherwise."""

_EVENTS = """
went visited moved travelled traveled flew drove hiked camped joined signed enrolled registered
applied started began opened launched quit resigned retired left lost broke hired fired promoted
won scored ranked finished completed graduated passed failed earned bought purchased sold ordered
received got adopted named born died married divorced engaged dating met attended organized
organised hosted volunteered donated raised taught learned studied read wrote published painted
drew built made designed recorded performed played watched cooked baked planted planning planned
booked scheduled decided chose changed switched cancelled canceled diagnosed injured hurt
recovered allergic created developed invited interviewed accepted offered
"""
_RELATIONS = """
mother mom mum father dad parents sister brother siblings wife husband partner fiance fiancee
girlfriend boyfriend son daughter kid kids child children baby cousin aunt uncle nephew niece
grandmother grandfather grandma grandpa family friend friends colleague coworker boss manager
neighbor neighbour roommate teacher mentor doctor dog cat puppy kitten pet
"""
_LIKINGS = """
favorite favourite prefer hate dislike allergic afraid hobby passion dream goal interested
passionate fan collect always never
"""

_EVENT_STEMS = frozenset(map(stem, _EVENTS.split()))
_RELATION_STEMS = frozenset(map(stem, _RELATIONS.split()))
_LIKING_STEMS = frozenset(map(stem, _LIKINGS.split()))


@dataclass(frozen=True, slots=True)
class Setting:
    """Hold what surrounds a sentence: who says it, and after what."""

    from_assistant: bool = False
    answers: bool = False
    opens: bool = False
    taken_up: float = 0.0


@dataclass(frozen=True, slots=True)
class Weights:
    """Hold what each trait of a sentence adds to its score."""

    base: float = -3.2
    filler: float = -1.1
    question: float = -1.2
    first_person: float = 0.3
    second_person: float = -0.55
    name: float = 0.5
    number: float = 0.4
    dated: float = 1.6
    quoted: float = 0.6
    size: float = 1.0
    event: float = 0.8
    relation: float = 0.3
    liking: float = 0.4
    lasting: float = 2.0
    answers: float = 0.7
    opens: float = 0.2
    assistant: float = -1.2
    taken_up: float = 1.0
    code: float = -1.5
    caption: float = -0.4
    excited: float = 0.2


HAND_SET = Weights()


def salience(sentence: str, setting: Setting, dated: bool, weights: Weights = HAND_SET) -> float:
    """Return how likely a sentence is worth keeping, between 0 and 1."""
    said = words(sentence)
    low = [word.lower() for word in said]
    stems = {stem(word) for word in said}
    content = [w for w in low if w not in FUNCTION_WORDS and w not in FILLER_WORDS]
    solid = [w for w in content if w not in LIGHT_WORDS]
    first = bool(_FIRST.search(sentence))
    w = weights
    score = w.base
    score += w.filler * _filler_share(low, solid)
    score += w.question * sentence.rstrip("\"')* ").endswith("?")
    score += w.first_person * first
    score += w.second_person * (not first and bool(_SECOND.search(sentence)))
    score += w.name * min(3, len(_NAME.findall(sentence)))
    score += w.number * min(2, len(_NUMBER.findall(sentence)))
    score += w.dated * dated
    score += w.quoted * bool(_QUOTED.search(sentence))
    score += w.size * min(1.5, len(solid) / 8)
    score += w.event * bool(stems & _EVENT_STEMS)
    score += w.relation * bool(stems & _RELATION_STEMS)
    score += w.liking * bool(stems & _LIKING_STEMS)
    score += w.lasting * bool(LASTING.search(sentence))
    score += w.caption * sentence.startswith(("[", "("))
    score += w.excited * sentence.rstrip().endswith("!")
    score += w.code * (len(_CODE.findall(sentence)) > 0.06 * len(sentence) + 1)
    score += _setting_score(setting, w)
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def _filler_share(low: list[str], solid: list[str]) -> float:
    if not low or len(solid) < 2:
        return 1.0
    return sum(word in FILLER_WORDS for word in low) / len(low)


def _setting_score(setting: Setting, w: Weights) -> float:
    score = w.answers * setting.answers + w.opens * setting.opens
    if setting.from_assistant:
        score += w.assistant
    return score + w.taken_up * setting.taken_up
