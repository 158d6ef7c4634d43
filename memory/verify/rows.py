"""Read rows as they are stored, all of one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.db.models import Model, QuerySet

from memory.models import (
    Cursor,
    Cycle,
    Line,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)

Row = Mapping[str, Any]
COPIES = frozenset({"import", "fork", "scope"})


@contextmanager
def one_moment() -> Iterator[None]:
    """Let every query of the block see the same moment, without keeping a writer waiting."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # transaction.atomic() would begin IMMEDIATE and so hold the write lock.
            cursor.execute("BEGIN")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


@dataclass
class Memory:
    """Hold all rows of one record, as stored."""

    record: Row
    threads: dict[UUID, Row]
    observations: dict[UUID, Row]
    sources: list[Row]
    lines: dict[UUID, Row]
    revisions: list[Row]
    cursors: list[Row]
    cycles: dict[UUID, Row]
    zone: ZoneInfo

    @cached_property
    def causes(self) -> dict[int, str]:
        """Return the cause of each revision by its number."""
        return {row["number"]: row["cause"] for row in self.revisions}

    @cached_property
    def erased_through(self) -> int:
        """Return the last revision that destroyed something; 0 when none did."""
        erased = [n for n, cause in self.causes.items() if cause == Revision.Cause.ERASE.value]
        return max(erased, default=0)

    @cached_property
    def begins_at(self) -> int:
        """Return the first revision: 1, or the one a copy of another record begins with."""
        first = min(self.causes, default=1)
        return first if self.causes.get(first) in COPIES else 1

    @cached_property
    def is_copy(self) -> bool:
        """Tell whether the record began as a copy of rows of another."""
        return self.causes.get(min(self.causes, default=0)) in COPIES

    def copied(self, row: Row) -> bool:
        """Tell whether a row was shown by a revision that copies."""
        return self.causes.get(row["since"]) in COPIES

    @cached_property
    def sources_of(self) -> dict[UUID, list[UUID]]:
        """Return the sources of each reflection."""
        found: dict[UUID, list[UUID]] = defaultdict(list)
        for row in self.sources:
            found[row["reflection_id"]].append(row["observation_id"])
        return found

    @cached_property
    def lines_of(self) -> dict[UUID, list[Row]]:
        """Return the lines of each observation, reflection and note."""
        found: dict[UUID, list[Row]] = defaultdict(list)
        for row in self.lines.values():
            found[row["observation_id"]].append(row)
        return found

    @cached_property
    def ranges_of(self) -> dict[UUID, list[Row]]:
        """Return each thread's observations by the range they cover."""
        found: dict[UUID, list[Row]] = defaultdict(list)
        for row in self.of_kind(Observation.Kind.OBSERVATION):
            found[row["thread_id"]].append(row)
        for ranges in found.values():
            ranges.sort(key=lambda row: (row["first_position"], row["last_position"]))
        return found

    def of_kind(self, kind: Observation.Kind) -> list[Row]:
        """Return the observations, the reflections or the notes."""
        return [row for row in self.observations.values() if row["kind"] == kind.value]


def load(record: Row) -> Memory:
    """Return all rows of a record."""
    of_record = {"record_id": record["id"]}
    memory = Memory(
        record=record,
        threads={},
        observations=_by_id(Observation.objects.filter(**of_record)),
        sources=list(ReflectionSource.objects.filter(reflection__record=record["id"]).values()),
        lines=_by_id(Line.objects.filter(observation__record=record["id"])),
        revisions=list(Revision.objects.filter(**of_record).order_by("number").values()),
        cursors=list(Cursor.objects.filter(**of_record).values()),
        cycles=_by_id(Cycle.objects.filter(**of_record)),
        zone=ZoneInfo(Resource.objects.get(pk=record["resource_id"]).time_zone),
    )
    memory.threads = _by_id(Thread.objects.filter(pk__in=_threads(memory)))
    return memory


def _threads(memory: Memory) -> set[UUID]:
    named = [*memory.observations.values(), *memory.cursors, *memory.cycles.values(), memory.record]
    return {row["thread_id"] for row in named if row["thread_id"] is not None}


def _by_id(rows: QuerySet[Any, Any]) -> dict[Any, Row]:
    return {row["id"]: row for row in rows.values()}


def stored(model: type[Model], **filters: Any) -> bool:
    """Tell whether a row is stored."""
    return bool(model._default_manager.filter(**filters).exists())
