"""Leave out what would overflow a model's window: the oldest steps first, never the newest."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from .cuts import Pending, legal_cuts

RESERVED = 0.1
"""The share of a window left free for the answer, and for what counts differently there."""

#: How many tokens models take in, by patterns of their names; the first that fits counts.
WINDOWS = (
    ("*gpt-4.1*", 1_000_000),
    ("*gpt-5*", 272_000),
    ("*gpt-4o*", 128_000),
    ("*o[134]-*", 200_000),
    ("*:o[134]", 200_000),
    ("o[134]", 200_000),
    ("*claude*", 200_000),
    ("*gemini*", 1_000_000),
    ("*deepseek*", 128_000),
    ("*mistral*", 128_000),
    ("*llama-3*", 128_000),
)


def window_of(model: str) -> int | None:
    """Return how many tokens a model takes in; None when nobody knows."""
    name = model.lower()
    return next((tokens for pattern, tokens in WINDOWS if fnmatchcase(name, pattern)), None)


def left_out(
    earlier: Sequence[Pending], current: Sequence[Pending], *, room: int
) -> tuple[int, int]:
    """Return how many of the oldest messages to leave out, of earlier turns and of the running one.

    ``room`` is what they may cost together. ``current`` begins with the prompt, which stays, as
    does its last step; calls stay with their results. More than that cannot be left out, even
    where it would have to.
    """
    excess = sum(m.tokens for m in (*earlier, *current)) - room
    if excess <= 0:
        return 0, 0
    count, saved = _fewest(earlier, [*legal_cuts(earlier), len(earlier) - 1], excess)
    if saved >= excess:
        return count, 0
    steps = current[1:]
    cuts = [cut for cut in legal_cuts(steps) if cut + 1 < len(steps)]
    within, _ = _fewest(steps, cuts, excess - saved)
    return count, within


def _fewest(messages: Sequence[Pending], cuts: Sequence[int], excess: int) -> tuple[int, int]:
    """Return the fewest oldest messages, ending at a cut, that save so much, or all up to it."""
    count, saved = 0, 0
    for cut in cuts:
        if cut < count:
            continue
        saved += sum(message.tokens for message in messages[count : cut + 1])
        count = cut + 1
        if saved >= excess:
            break
    return count, saved
