"""Tell open pages of the Studio that something they watch moved, so that they ask again.

Theory of operation
-------------------
A page watches *scopes*: a thread, a record, all of a resource, or everything. It is told of
a movement in two ways. Events reach it through the groups of threads and records. And since
an event can be lost, and a resource has no group, the hub compares a small *stamp* of every
watched scope with the last one, once a second, a statement or two for all pages of the
process. A page that is told twice finds that nothing differs.

Resources and everything grow without end, and so does counting them. Each second they get a
glance, which sees what happens all the time; they are counted as soon as the last count is a small
part of the time since.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from time import monotonic
from typing import Any, NamedTuple, Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Length

from agents import stamps
from agents.aside import for_pages
from agents.models import Turn
from agents.studio import glance
from memory.models import Cycle, MemoryRecord, Thread

logger = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
#: For how many times as long as a count took none is made.
REST = 20.0
MOST_SCOPES = 40


class BadScope(ValueError):
    """Say what is wrong with a scope."""


class Scope(NamedTuple):
    """Name what a page watches."""

    kind: str
    key: Any

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Return a scope from ``thread:ID``, ``record:ID``, ``resource:NUMBER`` or ``everything``.

        Raises BadScope.
        """
        kind, _, key = text.partition(":")
        try:
            match kind:
                case "thread" | "record":
                    return cls(kind, UUID(key))
                case "resource":
                    return cls(kind, int(key))
                case "everything" if not key:
                    return cls(kind, None)
        except ValueError:
            pass
        raise BadScope(f"{text[:60]!r} names nothing that can be watched.")


def scopes(text: str) -> frozenset[Scope]:
    """Return the scopes of a list by comma. Raises BadScope."""
    found = frozenset(Scope.parse(each) for each in text.split(",") if each)
    if len(found) > MOST_SCOPES:
        raise BadScope(f"A page can watch {MOST_SCOPES} things, not {len(found)}.")
    return found


class Watcher(Protocol):
    """Describe an open page, as the hub sees it."""

    async def moved(self, kind: str) -> None: ...


class Hub:
    """Hold the open pages of one event loop and what each watches."""

    def __init__(self, *, rest: float = REST) -> None:
        self._rest = rest
        self._count_at = 0.0
        self._counted: dict[Scope, Any] = {}
        self._watchers: dict[Watcher, frozenset[Scope]] = {}
        self._seen: dict[Scope, Any] = {}
        self._watching: asyncio.Task[None] | None = None

    def enter(self, watcher: Watcher, watched: frozenset[Scope]) -> None:
        """Watch for a page from now on."""
        self._watchers[watcher] = watched
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def leave(self, watcher: Watcher) -> None:
        """Forget a page; the last one ends the watch."""
        self._watchers.pop(watcher, None)
        if not self._watchers and self._watching is not None:
            self._watching.cancel()
            self._watching, self._seen = None, {}

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                # A database that is away for a moment must not end the watch.
                logger.exception("What pages watch could not be compared.")
            await asyncio.sleep(WATCH_SECONDS)

    async def look(self) -> None:
        """Compare everything that is watched with how it was, and tell whom it concerns."""
        watched = frozenset().union(*self._watchers.values()) if self._watchers else frozenset()
        if monotonic() >= self._count_at:
            began = monotonic()
            self._counted = await for_pages(count)(watched)
            self._count_at = monotonic() + self._rest * (monotonic() - began)
        seen = await for_pages(read)(watched)
        now = {scope: (seen[scope], self._counted.get(scope)) for scope in watched}
        moved = {
            scope for scope in watched if scope in self._seen and self._seen[scope] != now[scope]
        }
        self._seen = now
        for watcher, mine in list(self._watchers.items()):
            if mine & moved:
                await watcher.moved("watch")


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop."""
    return _OF_LOOP.setdefault(asyncio.get_running_loop(), Hub())


def read(watched: Collection[Scope]) -> dict[Scope, Any]:
    """Return a stamp for each scope: a value that differs once it moved, as far as is cheap."""
    keys = _by_kind(watched)
    found: dict[Scope, Any] = dict.fromkeys(watched)
    found |= _threads(keys["thread"]) | _records(keys["record"])
    resources = glance.of_resources(keys["resource"])
    found |= {Scope("resource", key): stamp for key, stamp in resources.items()}
    if keys["everything"]:
        found[Scope("everything", None)] = glance.of_everything()
    return found


def count(watched: Collection[Scope]) -> dict[Scope, Any]:
    """Return for each resource, and for everything, a value that differs once anything moved."""
    keys = _by_kind(watched)
    found = _resources(keys["resource"])
    if keys["everything"]:
        found[Scope("everything", None)] = _everything()
    return found


def _by_kind(watched: Collection[Scope]) -> dict[str, set[Any]]:
    by_kind: dict[str, set[Any]] = defaultdict(set)
    for scope in watched:
        by_kind[scope.kind].add(scope.key)
    return by_kind


def _threads(keys: Collection[UUID]) -> dict[Scope, Any]:
    return {Scope("thread", key): stamp for key, stamp in stamps.stamps(keys).items()}


def _records(keys: Collection[UUID]) -> dict[Scope, Any]:
    if not keys:
        return {}
    rows = MemoryRecord.objects.filter(pk__in=keys).annotate(
        ran=Count("cycles"), started=Max("cycles__started_at"), ended=Max("cycles__finished_at")
    )
    values = rows.values_list("pk", "revision", "epoch", "closed_at", "ran", "started", "ended")
    return {Scope("record", row[0]): row[1:] for row in values}


_ACTIVITY = {
    "threads": Count("pk"),
    "latest": Max("last_active_at"),
    "said": Sum("last_position"),
    "hidden": Count("deleted_at"),
    "archived": Count("archived_at"),
    # Not every new name is longer or shorter: one that is not comes with the next movement.
    "named": Sum(Length("title")),
}
_RECORDS = {"records": Count("pk"), "revisions": Sum("revision")}
_CYCLES = {"cycles": Count("pk"), "began": Max("started_at"), "closed": Max("finished_at")}
_TURNS = {
    "turns": Count("pk"),
    "running": Count("pk", filter=Q(status=Turn.Status.RUNNING)),
    "answered": Max("finished_at"),
}


def _resources(keys: Iterable[int]) -> dict[Scope, Any]:
    found: dict[int, list[Any]] = {key: [] for key in keys}
    if not found:
        return {}
    for rows, path, what in (
        (Thread.objects, "resource", _ACTIVITY),
        (MemoryRecord.objects, "resource", _RECORDS),
        (Cycle.objects, "record__resource", _CYCLES),
        (Turn.objects, "thread__resource", _TURNS),
    ):
        grouped = rows.filter(**{f"{path}__in": list(found)}).order_by().values(path)
        for row in grouped.annotate(**what):
            found[row.pop(path)].append(row)
    return {Scope("resource", key): stamp for key, stamp in found.items()}


def _everything() -> list[Any]:
    return [
        Thread.objects.aggregate(**_ACTIVITY),
        MemoryRecord.objects.aggregate(**_RECORDS),
        Cycle.objects.aggregate(**_CYCLES),
        Turn.objects.aggregate(**_TURNS),
    ]
