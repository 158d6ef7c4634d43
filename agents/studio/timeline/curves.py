"""Draw how many tokens are raw and how many are remembered over time, from what was stored.

Pure: arrivals of messages, what each revision covered, and how large memory was after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter

MOST_POINTS = 1200


@dataclass(frozen=True)
class Point:
    """Hold both levels from a time on."""

    at: datetime
    raw: int
    remembered: int


@dataclass(frozen=True)
class Shown:
    """Hold a revision: the message tokens it covered, and memory's tokens after it."""

    at: datetime
    covered: int
    after: int


@dataclass(frozen=True)
class Arrived:
    """Hold a message, or several, by when they were stored."""

    at: datetime
    tokens: int


def levels(arrivals: Iterable[Arrived], revisions: Iterable[Shown]) -> list[Point]:
    """Return both curves as steps, one point for each time at which anything changed.

    Of one instant messages come first: what a revision covers was there before it.
    """
    events: list[tuple[datetime, int, int, int | None]]
    events = [(each.at, 0, each.tokens, None) for each in arrivals]
    events += [(each.at, 1, -each.covered, each.after) for each in revisions]
    events.sort(key=itemgetter(0, 1))
    points: list[Point] = []
    raw, remembered = 0, 0
    for at, of_instant in groupby(events, key=itemgetter(0)):
        for _, _, tokens, after in of_instant:
            raw += tokens
            remembered = remembered if after is None else after
        points.append(Point(at, max(0, raw), remembered))
    return points


def at_time(points: Sequence[Point], at: datetime) -> Point | None:
    """Return the levels at a time; None before anything was there."""
    found = None
    for point in points:
        if point.at > at:
            break
        found = point
    return found


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Return at most about so many points; where a curve goes down both ends of it stay."""
    if len(points) <= most:
        return list(points)
    step = -(-len(points) // most)
    falls = {
        index
        for index, (before, after) in enumerate(pairwise(points))
        if after.raw < before.raw or after.remembered < before.remembered
    }
    kept = {*range(0, len(points), step), *falls, *(index + 1 for index in falls), len(points) - 1}
    return [points[index] for index in sorted(kept)]


@dataclass(frozen=True)
class Fall:
    """Hold where a curve came down: from what level, to which, and when."""

    at: datetime
    before: int
    after: int


def falls(points: Sequence[Point], curve: str) -> list[Fall]:
    """Return where a curve, ``raw`` or ``remembered``, came down."""
    pairs = pairwise(points)
    levels = ((getattr(a, curve), getattr(b, curve), b.at) for a, b in pairs)
    return [Fall(at, before, after) for before, after, at in levels if after < before]
