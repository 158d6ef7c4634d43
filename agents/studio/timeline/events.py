"""Select what happened to a memory: turns, cycles and revisions, as one table.

The three are selected together by their keys and times, a page of them is read by its keys:
a page costs the same however long the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import CharField, F, Prefetch, Q, QuerySet, Value
from django.db.models.functions import Cast, Coalesce

from agents.models import Turn
from memory.models import Cycle, MemoryRecord, Observation, Revision, Thread

PER_PAGE = 50

#: What can be asked for, with the words of the filter.
KINDS = {
    "turn": "Turns",
    "buffer": "Buffering",
    "observe": "Observing",
    "activate": "Activations",
    "reflect": "Reflecting",
    "edit": "Edits",
}
CYCLES = {
    Cycle.Kind.BUFFER: "buffer",
    Cycle.Kind.OBSERVE: "observe",
    Cycle.Kind.BUFFER_REFLECTION: "reflect",
    Cycle.Kind.REFLECT: "reflect",
}
CAUSES = {Revision.Cause.ACTIVATE: "activate", Revision.Cause.REFLECT: "reflect"}
FAILED_TURNS = (Turn.Status.FAILED, Turn.Status.INTERRUPTED)
FAILED_CYCLES = (Cycle.Status.FAILED, Cycle.Status.DISCARDED)


@dataclass(frozen=True)
class Filters:
    """Hold what of a timeline is asked for; an empty one asks for all of it."""

    kinds: frozenset[str] = frozenset()
    thread: UUID | None = None
    failed: bool = False
    least: float = 0
    since: datetime | None = None
    until: datetime | None = None

    @property
    def active(self) -> bool:
        """Tell whether anything is left out."""
        return self != Filters()

    def wants(self, kind: str) -> bool:
        """Tell whether a kind is asked for."""
        return not self.kinds or kind in self.kinds

    def spans(self, rows: QuerySet[Any], at: str) -> QuerySet[Any]:
        """Keep what lies in the window and lasted long enough; only what ended has lasted."""
        if self.least:
            ended = F(at) + timedelta(seconds=self.least)
            rows = rows.filter(finished_at__gte=ended)
        return self.within(rows, at)

    def within(self, rows: QuerySet[Any], at: str) -> QuerySet[Any]:
        """Keep what began in the window and belongs to the thread."""
        if self.thread is not None:
            rows = rows.filter(thread=self.thread)
        if self.since is not None:
            rows = rows.filter(**{f"{at}__gte": self.since})
        return rows if self.until is None else rows.filter(**{f"{at}__lte": self.until})


class Key(NamedTuple):
    """Name one row of the table: which table it is of, its key there, and when it was."""

    source: str
    key: str
    at: datetime


@dataclass(frozen=True)
class Scope:
    """Hold whose history is shown: a record's, and the turns of the threads that share it."""

    record: MemoryRecord | None
    threads: Collection[UUID]

    def turns(self, filters: Filters) -> QuerySet[Any]:
        """Select the turns that began."""
        rows = Turn.objects.filter(thread__in=self.threads).exclude(status=Turn.Status.WITHDRAWN)
        rows = rows.annotate(at=Coalesce("started_at", "created_at"))
        if not filters.wants("turn"):
            return rows.none()
        rows = rows.filter(status__in=FAILED_TURNS) if filters.failed else rows
        return filters.spans(rows, "at")

    def cycles(self, filters: Filters) -> QuerySet[Any]:
        """Select the runs of Observers and Reflectors."""
        kinds = [kind for kind, name in CYCLES.items() if filters.wants(name)]
        rows = Cycle.objects.filter(record=self.record, kind__in=kinds)
        rows = rows.annotate(at=F("started_at"))
        if filters.failed:
            rows = rows.filter(status__in=FAILED_CYCLES)
        return filters.spans(rows, "at")

    def revisions(self, filters: Filters) -> QuerySet[Any]:
        """Select the revisions but those of observing at once: their cycle says it all."""
        rows = Revision.objects.filter(record=self.record).exclude(cause=Revision.Cause.OBSERVE)
        rows = rows.annotate(at=F("created_at"))
        if filters.failed or filters.least:
            return rows.none()
        named = list(CAUSES)
        wanted = [cause for cause, name in CAUSES.items() if filters.wants(name)]
        chosen = Q(cause__in=wanted)
        if filters.wants("edit"):
            chosen |= ~Q(cause__in=named)
        return filters.within(rows.filter(chosen), "at")

    def keys(self, filters: Filters) -> QuerySet[Any]:
        """Select the keys of the rows, the newest first."""
        sources = {
            "turn": self.turns(filters),
            "cycle": self.cycles(filters),
            "revision": self.revisions(filters),
        }
        first, *others = (_keyed(source, rows) for source, rows in sources.items())
        together: QuerySet[Any] = first.union(*others, all=True)
        return together.order_by("-at", "-row")

    def count(self, filters: Filters) -> int:
        """Return how many rows there are, in one statement for each table."""
        return sum(
            rows.count()
            for rows in (self.turns(filters), self.cycles(filters), self.revisions(filters))
        )

    def newer(self, filters: Filters, at: datetime) -> int:
        """Return how many rows are newer than a time."""
        tables = self.turns(filters), self.cycles(filters), self.revisions(filters)
        return sum(rows.filter(at__gt=at).count() for rows in tables)


def _keyed(source: str, rows: QuerySet[Any]) -> QuerySet[Any]:
    named: QuerySet[Any] = rows.order_by().annotate(
        table=Value(source, output_field=CharField()),
        row=Cast("pk", CharField()),
    )
    return named.values_list("table", "row", "at")


@dataclass(frozen=True)
class Found:
    """Hold the rows of a page by their keys."""

    turns: Mapping[str, Turn] = field(default_factory=dict)
    cycles: Mapping[str, Cycle] = field(default_factory=dict)
    revisions: Mapping[str, Revision] = field(default_factory=dict)

    def __getitem__(self, key: Key) -> Turn | Cycle | Revision:
        tables: dict[str, Mapping[str, Any]] = {
            "turn": self.turns,
            "cycle": self.cycles,
            "revision": self.revisions,
        }
        row: Turn | Cycle | Revision = tables[key.source][plain(key.key)]
        return row


def read(keys: Sequence[Key]) -> Found:
    """Return the rows of some keys, in one statement for each table."""
    observed = Prefetch("observations", Observation.objects.order_by("first_position"))
    return Found(
        _by_key(keys, "turn", Turn.objects.select_related("thread", "author")),
        _by_key(
            keys,
            "cycle",
            Cycle.objects.select_related("thread").prefetch_related(observed, "revisions"),
        ),
        _by_key(keys, "revision", Revision.objects.select_related("author", "thread")),
    )


def _by_key(keys: Iterable[Key], source: str, rows: QuerySet[Any]) -> dict[str, Any]:
    wanted = [each.key for each in keys if each.source == source]
    return {plain(str(row.pk)): row for row in rows.filter(pk__in=wanted)} if wanted else {}


def plain(key: str) -> str:
    """Return a key as every database writes it: an id without its dashes."""
    return key.replace("-", "")


def in_pages(
    scope: Scope, filters: Filters, show: Callable[[Key, Any], Any], *, size: int = 500
) -> Iterator[Any]:
    """Yield every row, shown, the oldest last, some hundred at a time."""
    start = 0
    while keys := [Key(*row) for row in scope.keys(filters)[start : start + size]]:
        found = read(keys)
        yield from (show(key, found[key]) for key in keys)
        start += size


def threads_of(record: MemoryRecord | None, thread: Thread) -> list[Thread]:
    """Return the threads whose turns belong to a timeline, the asked one first."""
    if record is None or record.thread_id is not None:
        return [thread]
    from agents.shared import threads_in

    others = threads_in(record).exclude(pk=thread.pk).order_by("-last_active_at")
    return [thread, *others]
