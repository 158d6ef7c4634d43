"""Lay times out from left to right, with long pauses cut short and said to be so. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

#: How much longer than what happens besides a pause may be drawn.
SHARE = 0.08
SHORTEST = timedelta(seconds=20)


@dataclass(frozen=True)
class Break:
    """Hold a pause that is drawn shorter than it was; ``x`` is its middle."""

    x: float
    lasted: timedelta


class Scale:
    """Place times between 0 and 1, in their order; a longer span is never drawn shorter."""

    def __init__(self, times: Iterable[datetime]) -> None:
        self._times = sorted(set(times))
        pairs = zip(self._times, self._times[1:], strict=False)
        self._gaps = [later - earlier for earlier, later in pairs]

    @cached_property
    def longest(self) -> timedelta:
        """Return how long a pause is drawn at most."""
        sizes = sorted(self._gaps)
        short = sum(sizes[: (9 * len(sizes)) // 10], timedelta())
        return max(SHORTEST, short * SHARE, *sizes[: len(sizes) // 2][-1:])

    @cached_property
    def _places(self) -> list[float]:
        places = [0.0]
        for gap in self._gaps:
            places.append(places[-1] + min(gap, self.longest).total_seconds())
        return places

    @property
    def width(self) -> float:
        """Return how many seconds are drawn."""
        return (self._places[-1] if self._times else 0.0) or 1.0

    @property
    def end(self) -> datetime | None:
        """Return the last time that is drawn."""
        return self._times[-1] if self._times else None

    def x(self, at: datetime) -> float:
        """Return the place of a time; one outside stands at the edge."""
        if not self._times or at <= self._times[0]:
            return 0.0
        if at >= self._times[-1]:
            return self._places[-1] / self.width
        before = bisect_right(self._times, at) - 1
        gap = self._gaps[before].total_seconds()
        share = (at - self._times[before]).total_seconds() / gap if gap else 0.0
        drawn = self._places[before + 1] - self._places[before]
        return (self._places[before] + share * drawn) / self.width

    @property
    def breaks(self) -> list[Break]:
        """Return the pauses that are cut short."""
        middles = zip(self._places, self._places[1:], strict=False)
        return [
            Break((start + end) / 2 / self.width, gap)
            for (start, end), gap in zip(middles, self._gaps, strict=True)
            if gap > self.longest
        ]

    def ticks(self, count: int) -> list[tuple[float, datetime]]:
        """Return times to name, about so many, evenly spread over what is drawn."""
        if not self._times:
            return []
        found: list[tuple[float, datetime]] = []
        for at in self._times:
            x = self.x(at)
            if not found or x - found[-1][0] >= 1 / count:
                found.append((x, at))
        return found
