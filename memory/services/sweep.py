"""Take over what dead processes left, decide anew, and show early what waits in idle threads.

A decision that was never claimed has no row, so a lost wake-up is found only by looking. Each
sweep looks at what was active since the last one, and at one page of the others; so its work
is bounded, whatever their number, and at rest it is a handful of statements. A thread is looked
at once for each change, and again after a while, in case that wake-up was lost too. Threads that
share a record are one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from memory.config import MemoryOptions, options_of_agent
from memory.dispatch import dispatch
from memory.models import Cursor, Cycle, MemoryRecord, Observation, Revision, Thread

from .cycles import retire_lapsed
from .early import IDLE, Early, idle_of
from .kept import Recent
from .look import look, options_of
from .prepare import settle

RECENT = timedelta(days=7)
AGAIN = timedelta(minutes=10)
MARGIN = timedelta(seconds=60)
MOST_THREADS = 200
MOST_KNOWN = 20_000


@dataclass(frozen=True)
class _Place:
    """Hold what is to be known of a thread, or of one of those that share a record.

    ``key`` names what they share, ``newest`` is when any of them was active last, ``shown_at``
    when what waited was shown at rest, if nothing has changed since.
    """

    thread: UUID
    key: UUID
    active_at: datetime
    newest: datetime
    revision: int | None
    chunks: bool
    reflection: bool
    shown_at: datetime | None
    options: MemoryOptions
    model: str

    def early(self, at: datetime) -> Early:
        """Return what is to be shown early, of what waits."""
        found = idle_of(self.options, self.model, (at - self.newest).total_seconds())
        shown = self.shown_at is not None and self.shown_at >= self.newest
        return Early(
            found.observation if self.chunks and not shown else "",
            found.reflection if self.reflection else "",
        )


@dataclass
class Sweep:
    """Hold what the sweeps of this process have seen, and where the next goes on.

    ``since`` is when the last one was, ``before`` how far back the pages have come; None before
    the first, and when all were seen. ``seen`` and ``shown`` are kept by thread or record.
    """

    since: datetime | None = None
    before: datetime | None = None
    seen: Recent[tuple[object, datetime]] = field(default_factory=lambda: Recent(MOST_KNOWN))
    shown: Recent[object] = field(default_factory=lambda: Recent(MOST_KNOWN))

    def __call__(self, at: datetime) -> int:
        """Sweep as of a time; return how many lapsed cycles were ended."""
        ended = retire_lapsed(Cycle.objects.all())
        found = rested().order_by("next_attempt_at").values_list("thread_id", flat=True)
        woken = {thread_id for thread_id in found[:MOST_THREADS] if thread_id is not None}
        for thread_id in woken:
            dispatch(thread_id)
        for place in _one_each(map(_place, self._rows(at))):
            if place.thread not in woken:
                self._look(place, at)
            self._show(place, at)
        return ended

    def _rows(self, at: datetime) -> Iterator[Any]:
        """Yield what was active since the last sweep, then the next page of all others."""
        recent = _threads().filter(last_active_at__gt=at - RECENT)
        if self.since is not None:
            yield from recent.filter(last_active_at__gt=self.since - MARGIN)[:MOST_THREADS]
        others = recent if self.before is None else recent.filter(last_active_at__lt=self.before)
        page = list(others[:MOST_THREADS])
        self.since = at
        self.before = page[-1].last_active_at if len(page) == MOST_THREADS else None
        yield from page

    def _look(self, place: _Place, at: datetime) -> None:
        """Wake the runner, unless it was woken for what is there now."""
        now, known = (place.newest, place.revision), self.seen.get(place.key)
        if known is None or known[0] != now or at - known[1] >= AGAIN:
            self.seen.put(place.key, (now, at))
            dispatch(place.thread)

    def _show(self, place: _Place, at: datetime) -> None:
        """Show what waits in what rested long enough, each thing once while it rests."""
        early = place.early(at)
        done = (place.newest, early)
        if early != Early() and self.shown.get(place.key) != done:
            self.shown.put(place.key, done)
            show_early(place.thread, early)


_own = Sweep()


def sweep(at: datetime | None = None) -> int:
    """End lapsed cycles, wake the runner where something may be due, show what waits at rest.

    Returns how many cycles were ended.
    """
    return _own(at or timezone.now())


def show_early(thread_id: UUID, early: Early) -> int:
    """Show what waits before its threshold; return the record's revision then."""
    with transaction.atomic():
        view = look(thread_id)
        if view is None:
            return 0
        view, _ = settle(view, may_wait=False, early=early)
        return view.revision


def rested() -> QuerySet[Cycle]:
    """Select the cycles to be tried again whose lane has rested, and after which none began."""
    newer = Cycle.objects.filter(
        record=OuterRef("record"), lane=OuterRef("lane"), started_at__gt=OuterRef("started_at")
    )
    return Cycle.objects.filter(
        next_attempt_at__lte=Now(),
        next_attempt_at__gt=Now() - RECENT,
        record__closed_at__isnull=True,
        thread__remembers=True,
    ).exclude(Exists(newer))


def _one_each(rows: Iterable[_Place]) -> Iterable[_Place]:
    """Return one place for each record; what waits in any of its threads counts for it."""
    found: dict[UUID, _Place] = {}
    for row in rows:
        known = found.get(row.key)
        found[row.key] = row if known is None else replace(known, chunks=known.chunks or row.chunks)
    return found.values()


def _place(row: Any) -> _Place:
    shares = row.own is None and row.common is not None
    return _Place(
        thread=row.pk,
        key=row.common if shares else row.pk,
        active_at=row.last_active_at,
        newest=row.newest if shares else row.last_active_at,
        revision=row.revision,
        chunks=row.chunks,
        reflection=row.reflection,
        shown_at=row.shown_at,
        options=options_of(row.agent, _text(_options(row)), _text(row.config)),
        model=getattr(row, "actor_model", None) or settings.ACTOR_MODEL,
    )


def _options(row: Any) -> Any:
    return row.of_agent if settings.MEMORY_AGENT_MODEL else options_of_agent(row.agent)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value or {})


def _threads() -> QuerySet[Any]:
    """Return threads, the latest first, with what is to be known of each and of its record."""
    records = MemoryRecord.objects.filter(closed_at__isnull=True)
    own = records.filter(thread=OuterRef("pk"), scope=MemoryRecord.Scope.THREAD)
    common = records.filter(resource=OuterRef("resource"), scope=MemoryRecord.Scope.RESOURCE)
    beside = Thread.objects.filter(resource=OuterRef("resource")).order_by("-last_active_at")
    record = MemoryRecord.objects.filter(pk=OuterRef("record"))
    waiting = Cursor.objects.filter(
        record=OuterRef("record"), thread=OuterRef("pk"), observed_through__lt=F("buffered_through")
    )
    last = Revision.objects.filter(
        record=OuterRef("record"), number=OuterRef("revision"), trigger=IDLE
    )
    return (
        Thread.objects.there()
        .filter(remembers=True)
        .order_by("-last_active_at")
        .annotate(own=Subquery(own.values("pk")), common=Subquery(common.values("pk")))
        .annotate(
            record=Coalesce("own", "common"),
            newest=Subquery(beside.values("last_active_at")[:1]),
            **_of_agent(),
        )
        .annotate(
            revision=Subquery(record.values("revision")),
            config=Subquery(record.values("config")),
            chunks=Exists(waiting),
            reflection=Exists(
                Observation.objects.waiting_reflections(OuterRef("record")).filter(thread=None)
            ),
        )
        .annotate(shown_at=Subquery(last.values("created_at")))
    )


def _of_agent() -> dict[str, Subquery]:
    """Select options and model of the thread's agent from the table settings name, if any."""
    if not settings.MEMORY_AGENT_MODEL:
        return {}
    model = apps.get_model(settings.MEMORY_AGENT_MODEL)
    agent = model._default_manager.filter(slug=OuterRef("agent"))
    return {
        "of_agent": Subquery(agent.values("memory_options")[:1]),
        "actor_model": Subquery(agent.values("model")[:1]),
    }
