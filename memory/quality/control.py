"""Deal out the answers anew, so that what is measured by accident shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from memory.quality.questions import Asked, answerable
from memory.quality.values import Remembered

SEED = 3

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Answered:
    """Hold a question with the answer of another one."""

    text: str
    answer: str
    category: str
    evidence: tuple[str, ...]
    at: datetime | None


def shuffled(conversations: Sequence[Remembered], *, seed: int = SEED) -> list[Remembered]:
    """Return the conversations with every answer given to another question of its category.

    Answers stay within their conversation; where a category has only one question there,
    they go round among the conversations that have only one. A question that is the only
    one of its category anywhere is left out.
    """
    random = Random(seed)
    dealt: dict[Place, Asked] = {}
    for places in _groups(conversations):
        random.shuffle(places)
        for place, giver in zip(places, [*places[1:], places[0]], strict=True):
            dealt[place] = _swapped(_at(conversations, place), _at(conversations, giver))
    return [
        replace(
            conversation, questions=tuple(dealt[place] for place in sorted(dealt) if place[0] == n)
        )
        for n, conversation in enumerate(conversations)
    ]


def _groups(conversations: Sequence[Remembered]) -> Iterable[list[Place]]:
    """Return the places of questions that may swap answers, two or more together."""
    together: dict[tuple[int, str], list[Place]] = defaultdict(list)
    for n, conversation in enumerate(conversations):
        for index, question in enumerate(conversation.questions):
            if answerable(question):
                together[n, question.category].append((n, index))
    alone: dict[str, list[Place]] = defaultdict(list)
    for (_, category), places in together.items():
        if len(places) == 1:
            alone[category] += places
    groups = [*together.values(), *alone.values()]
    return [places for places in groups if len(places) > 1]


def _at(conversations: Sequence[Remembered], place: Place) -> Asked:
    return conversations[place[0]].questions[place[1]]


def _swapped(question: Asked, giver: Asked) -> Answered:
    return Answered(question.text, giver.answer, question.category, question.evidence, question.at)
