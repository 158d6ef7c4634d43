"""Choose which buffered observations become active, and so which messages stay raw.

The aim is to come down to the retention floor. Chunks go oldest first and whole; the
chunk that crosses the aim is taken when it does not cut far below the floor, unless
enough messages would not remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from .thresholds import Thresholds

OVERSHOOT = 0.95
LEAST_REMAINING = 1000


def chunks_to_activate(chunks: Sequence[int], *, pending: int, thresholds: Thresholds) -> int:
    """Return how many of the oldest chunks to activate: at least one when there are any.

    ``chunks`` are the message tokens each of them covers, oldest first; ``pending`` all
    message tokens not observed yet, the current prompt included.
    """
    if not chunks:
        return 0
    floor = thresholds.floor
    target = max(0, pending - floor)
    least = min(LEAST_REMAINING, floor)
    forced = thresholds.buffer is not None and pending >= thresholds.ceiling
    removed = list(accumulate(chunks))
    over = next((n for n, tokens in enumerate(removed, 1) if tokens >= target), None)
    under = next((n for n in range(len(removed), 0, -1) if removed[n - 1] < target), None)
    if over is not None:
        overshoot = removed[over - 1] - target
        modest = forced or overshoot <= OVERSHOOT * floor
        if modest and pending - removed[over - 1] >= least:
            return over
    if under is not None and pending - removed[under - 1] >= least:
        return under
    return over or 1
