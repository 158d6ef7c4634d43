"""Offer the windows of time that lie beside one: narrower, wider, earlier, later. Pure.

A step is counted in what happened, not in hours: no window it leads to is empty, and a pause of
weeks takes no longer than one of minutes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

#: The ends of a window; None where it goes as far as there is anything.
Window = tuple[datetime | None, datetime | None]
ALL: Window = (None, None)


def windows(
    times: Iterable[datetime], window: Window, *, about: datetime | None = None
) -> Mapping[str, Window]:
    """Return the windows to go to, by name, those left out that would show the same.

    A narrower one lies about a time, where that is in the window, else about its middle.
    """
    known = sorted(set(times))
    since, until = window
    first = bisect_left(known, since) if since else 0
    last = (bisect_right(known, until) if until else len(known)) - 1
    found: dict[str, Window] = {"all": ALL} if window != ALL else {}
    if first <= last:
        for name, (start, end) in _beside(known, first, last, about):
            start, end = max(start, 0), min(end, len(known) - 1)
            if (start, end) != (first, last):
                found[name] = _window(known, start, end)
    return found


def _beside(
    known: Sequence[datetime], first: int, last: int, about: datetime | None
) -> Iterator[tuple[str, tuple[int, int]]]:
    half = max(1, (last - first + 1) // 2)
    back, on = min(half, first), min(half, len(known) - 1 - last)
    yield "earlier", (first - back, last - back)
    yield "later", (first + on, last + on)
    yield "wider", (first - half, last + half)
    if last - first >= half:
        middle = (first + last) // 2
        if about is not None and known[first] <= about <= known[last]:
            middle = bisect_left(known, about)
        start = min(max(first, middle - half // 2), last - half)
        yield "narrower", (start, start + half)


def _window(known: Sequence[datetime], first: int, last: int) -> Window:
    return (
        known[first] if first > 0 else None,
        known[last] if last < len(known) - 1 else None,
    )
