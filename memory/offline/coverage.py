"""Choose statements by what each adds to those already kept."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from memory.offline.words import stem, weight, words

Count = Callable[[str], int]
Covered = Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Claim:
    """Hold one statement that may be kept: what it says, what it costs, what it is worth.

    ``terms`` weigh each stem; ``group`` shares an overhead of tokens, paid once.
    """

    text: str
    subject: str
    worth: float
    cost: float
    terms: dict[str, float] = field(hash=False)
    group: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Taste:
    """Hold how claims are weighed against each other."""

    novelty: float = 0.5
    fade: float = 0.5
    thrift: float = 0.6


def size(text: str) -> int:
    """Return what a text costs to read.

    Words count by their length, not as a tokenizer cuts them: rare names, which say most,
    would pay most.
    """
    return 1 + sum((len(word) + 5) // 6 for word in text.split())


def term_weights(text: str) -> dict[str, float]:
    """Return what each stem of a text weighs by itself."""
    found: dict[str, float] = {}
    for word in words(text):
        heavy = weight(word)
        if heavy > 0:
            found[stem(word)] = max(heavy, found.get(stem(word), 0.0))
    return found


def cover(covered: Covered, subject: str, stems: Iterable[str]) -> None:
    """Note that stems have been said about a subject."""
    covered.update((subject, one) for one in stems)


def gain(claim: Claim, covered: Covered, taste: Taste, overhead: int = 0) -> float:
    """Return what keeping a claim adds, per token."""
    total = sum(claim.terms.values())
    if not total:
        return 0.0
    fresh = sum(
        heavy * taste.fade ** min(20, covered[claim.subject, one])
        for one, heavy in claim.terms.items()
    )
    value = claim.worth * ((1 - taste.novelty) + taste.novelty * fresh / total)
    return float(value / (claim.cost + overhead) ** taste.thrift)


def choose(
    claims: Sequence[Claim],
    covered: Covered,
    *,
    budget: float,
    floor: float = 0.0,
    taste: Taste = Taste(),
    overhead: Callable[[tuple[object, ...]], int] = lambda _: 0,
) -> list[int]:
    """Return the indexes of the claims to keep, in order, within a budget of tokens.

    The best comes first; each is weighed against what is kept before it. Nothing whose gain
    is under ``floor`` is kept. ``covered`` is extended by what is kept.
    """
    opened: set[tuple[object, ...]] = set()
    spent = 0.0

    def extra(claim: Claim) -> int:
        return 0 if claim.group in opened else overhead(claim.group)

    heap = [(-gain(c, covered, taste, extra(c)), i) for i, c in enumerate(claims)]
    heapq.heapify(heap)
    kept: list[int] = []
    while heap:
        _, index = heapq.heappop(heap)
        claim = claims[index]
        now = gain(claim, covered, taste, extra(claim))
        if heap and now < -heap[0][0] - 1e-12:
            heapq.heappush(heap, (-now, index))
            continue
        if now <= floor:
            break
        price = claim.cost + extra(claim)
        if spent + price > budget:
            continue
        spent += price
        opened.add(claim.group)
        kept.append(index)
        cover(covered, claim.subject, claim.terms)
    return sorted(kept)
