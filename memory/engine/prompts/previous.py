"""Choose which earlier observations an Observer is shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import tzinfo
from itertools import accumulate
from typing import Literal

from memory.engine.listing import Listing
from memory.engine.shorten import Tokenizer
from memory.engine.values import Line, LineKind

IMPORTANT = frozenset({LineKind.HIGH, LineKind.DONE})

HEADER_SHARE = 3
"""What a line costs besides its own count: its share of a date header."""


def previous_observations(
    lines: Sequence[Line], *, budget: int | Literal[False], tz: tzinfo, tokenizer: Tokenizer
) -> str:
    """Return the lines that fit ``budget`` tokens, saying how many are left out and where.

    False is no limit: all of them.

    The newest lines are kept, and before them as many older important ones at most. Of all
    such choices the one with most important lines is taken, then the one with most of the
    newest. Nothing fits: only the number left out. No budget: nothing at all.
    """
    if budget is False:
        return _written(lines, frozenset(range(len(lines))), tz)
    if not lines or budget <= 0:
        return ""
    room = budget
    while True:
        kept = _choice(lines, room)
        text = _written(lines, kept, tz)
        tokens = tokenizer.count(text)
        if tokens <= budget or not kept:
            return text
        # Costs are estimated from the stored counts; the text itself decides.
        room = min(room, _cost(lines)) * budget // tokens - 1


def _cost(lines: Sequence[Line]) -> int:
    return sum(line.tokens + HEADER_SHARE for line in lines)


def _choice(lines: Sequence[Line], room: int) -> frozenset[int]:
    """Return the indices to keep."""
    costs = [line.tokens + HEADER_SHARE for line in lines]
    if sum(costs) <= room:
        return frozenset(range(len(lines)))
    tails = [total for total in accumulate(reversed(costs)) if total <= room]
    important = [index for index, line in enumerate(lines) if line.kind in IMPORTANT]
    best: tuple[int, int, list[int]] = (0, 0, [])
    for length, spent in enumerate(tails, start=1):
        older = bisect_left(important, len(lines) - length)
        head = _head(important[max(older - length, 0) : older], costs, room - spent)
        value = len(head) + len(important) - older
        best = max(best, (value, length, head), key=lambda choice: choice[:2])
    _, length, head = best
    kept = frozenset([*head, *range(len(lines) - length, len(lines))])
    return _without_single_gaps(kept, costs, room)


def _without_single_gaps(kept: frozenset[int], costs: Sequence[int], room: int) -> frozenset[int]:
    # A line left out alone saves little more than the remark that it is left out costs.
    filled = set(kept)
    left = room - sum(costs[index] for index in kept)
    for index in range(len(costs) - 2, -1, -1):
        alone = index + 1 in kept and (index == 0 or index - 1 in kept)
        if alone and index not in kept and costs[index] <= left:
            filled.add(index)
            left -= costs[index]
    return frozenset(filled)


def _head(candidates: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
    """Return the newest candidates that fit."""
    newest = candidates[::-1]
    spent = accumulate(costs[index] for index in newest)
    return [index for index, total in zip(newest, spent, strict=True) if total <= room]


def _written(lines: Sequence[Line], kept: frozenset[int], tz: tzinfo) -> str:
    listing = Listing(tz)
    hidden = 0
    for index, line in enumerate(lines):
        if index not in kept:
            hidden += 1
            continue
        _note(listing, hidden)
        hidden = 0
        listing.add(line)
    _note(listing, hidden)
    return listing.text


def _note(listing: Listing, hidden: int) -> None:
    if hidden:
        listing.note(f"[{hidden} observation{'s' if hidden > 1 else ''} left out]")
