"""Keep what pages read for as long as nothing moved that it depends on.

Theory of operation
-------------------
Whoever renders reads a *stamp* first and the rows after it. A fact that was read is kept with
the revision of its record and the parts of the stamp that move whenever its rows do; at another
stamp it is read anew, and what was read a moment too late is only newer than its stamp says. Two
processes whose clocks differ can leave a stamp as it was, so an event that is heard counts as a
movement too. There is one fact of each name for a thread or a record: what has become old gives
way to what is new, and does not pile up. What models wrote is kept longer: until the epoch of its
record rises, which is when people change memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sized
from typing import Any, TypeVar
from uuid import UUID

from memory.services.kept import Recent, recent

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)

#: How many rows are kept in all; one of them takes about two kilobytes.
MOST_ROWS = 40_000
MOST_EVENTS = 8192

#: Which parts of a stamp an event of a kind can have moved; of one not named here, all.
_MOVES: Mapping[str, tuple[str, ...]] = {
    "turn": ("turn",),
    "messages": ("turn", "position", "beside"),
    "cycle": ("cycle",),
}
_ALL = ("turn", "position", "beside", "cycle", "revision")

_facts: Recent[tuple[Hashable, Any]] = recent(MOST_ROWS, lambda fact: _rows(fact[1]))
_heard: Recent[Hashable] = recent(MOST_EVENTS)


def _rows(value: Any) -> int:
    return 1 + len(value) if isinstance(value, Sized) else 1


def hear(event: Mapping[str, Any]) -> None:
    """Count an event as a movement of what it names."""
    what = tuple(sorted((name, str(value)) for name, value in event.items()))
    for part in _MOVES.get(event["kind"].partition(".")[0], _ALL):
        for of in filter(None, (event["thread"], event.get("record"))):
            _heard.put((part, str(of)), what)


def moved(of: UUID, parts: Iterable[str]) -> Hashable:
    """Return a value that differs once an event was heard that can have moved these parts."""
    return tuple(_heard.get((part, str(of))) for part in parts)


def fact(name: str, of: UUID, at: Hashable, read: Callable[[], Value]) -> Value:
    """Return what is known of a thread or a record at a place, read if it is not."""
    known = _facts.get((name, of))
    if known is None or known[0] != at:
        known = at, read()
        _facts.put((name, of), known)
    value: Value = known[1]
    return value


def facts(
    name: Hashable,
    of: Iterable[Key],
    at: Hashable,
    read: Callable[[Collection[Key]], Mapping[Key, Value]],
) -> dict[Key, Value]:
    """Return what is known of several things at a place; those that are not are read at once."""
    found = {each: _facts.get((name, each)) for each in of}
    missing = [each for each, known in found.items() if known is None or known[0] != at]
    for each, value in (read(missing) if missing else {}).items():
        found[each] = at, value
        _facts.put((name, each), (at, value))
    return {each: known[1] for each, known in found.items() if known is not None}


def newest(
    name: str,
    of: UUID,
    at: Hashable,
    read: Callable[[Value | None], list[Value]],
    *,
    most: int,
    lasts: Callable[[Value], bool] = lambda row: True,
) -> list[Value]:
    """Return the newest rows, newest first, reading those after one that is known.

    Known are those that stay as they are, and before which all others do.
    """
    known = _facts.get((name, of))
    old: list[Value] = known[1] if known is not None and known[0] == at else []
    rows = [*read(old[0] if old else None), *old][:most]
    moving = max((place for place, row in enumerate(rows, 1) if not lasts(row)), default=0)
    _facts.put((name, of), (at, rows[moving:]))
    return rows
