"""Say how large a memory is as it is sent, at any revision, and count stored rows anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction

from memory.engine.listing import tells_hour
from memory.engine.size import Counted, Spanned, listed_tokens, sizes
from memory.models import Line, MemoryRecord, Observation, Resource, Revision
from memory.tokens import count_line

ERASE = Revision.Cause.ERASE.value
AT_ONCE = 500


class Tables(NamedTuple):
    """Name the tables that are counted: those of today, or of a time they are migrated at."""

    records: Any = MemoryRecord
    observations: Any = Observation
    lines: Any = Line
    revisions: Any = Revision


def size_of(lines: Iterable[Counted], zone: tzinfo) -> int:
    """Return the tokens of lines as they are sent in this order, with the headers of days."""
    return listed_tokens(lines, zone)


def tokens_at(record_id: UUID, number: int) -> int:
    """Return the tokens of the lines visible at a revision, as they are sent."""
    lines = Line.objects.as_of(record_id, number).in_order()
    zone = "observation__record__resource__time_zone"
    rows = list(lines.values_list("text", "tokens", "said_at", zone))
    return size_of((Spanned(*row[:3]) for row in rows), ZoneInfo(rows[0][3])) if rows else 0


def move_to_zone(resource_id: int, before: tzinfo) -> None:
    """Move a resource's memory from one time zone to the one it has now, and count it anew.

    A line whose hour nobody gave keeps its day.
    """
    with transaction.atomic():
        now = ZoneInfo(Resource.objects.values_list("time_zone", flat=True).get(pk=resource_id))
        dated = Line.objects.filter(
            observation__record__resource=resource_id, said_at__isnull=False
        )
        moved = []
        for line in dated.only("said_at"):
            said = line.said_at.astimezone(before) if line.said_at else None
            if said is not None and not tells_hour(said):
                line.said_at = said.replace(tzinfo=now)
                moved.append(line)
        _store(Line, moved, "said_at")
        recount_resource(resource_id)


def recount_resource(resource_id: int) -> None:
    """Count what a resource's memory holds anew, as after another time zone has moved its days."""
    with transaction.atomic():
        mine = MemoryRecord.objects.filter(resource=resource_id).select_for_update().order_by("pk")
        for record in mine.select_related("resource"):
            recount(record)


def recount(record: Any, tables: Tables | None = None) -> None:
    """Store the tokens of a record's lines, rows and revisions, counted anew.

    Revisions before an erasure keep what they say: they counted what is destroyed since.
    """
    tables = tables or Tables()
    owners = {row.pk: row for row in tables.observations.objects.filter(record=record.pk)}
    lines = list(tables.lines.objects.filter(observation__record=record.pk))
    sums: dict[UUID, int] = defaultdict(int)
    for line in lines:
        line.tokens = count_line(line.kind, line.text, line.said_at)
        if line.replaces_id is None:
            sums[line.observation_id] += line.tokens
    for owner in owners.values():
        owner.tokens = sums[owner.pk]
    _store(tables.lines, lines, "tokens")
    _store(tables.observations, owners.values(), "tokens")
    revisions = list(tables.revisions.objects.filter(record=record.pk).order_by("number"))
    ordered = sorted(lines, key=lambda line: place_of(line, owners[line.observation_id]))
    spans = [
        Spanned(line.text, line.tokens, line.said_at, line.since, line.until) for line in ordered
    ]
    _resize(revisions, spans, ZoneInfo(record.resource.time_zone))
    _store(tables.revisions, revisions, "tokens_before", "tokens_after")


def place_of(line: Any, owner: Any) -> tuple[Any, ...]:
    """Return what sorts a line as the Actor reads it, like ``Line.objects.in_order``."""
    nobody = UUID(int=0)
    first = -1 if owner.first_position is None else owner.first_position
    return (owner.place or 0, owner.thread_id or nobody, first, owner.pk, line.ordinal)


def _resize(revisions: Sequence[Any], spans: Sequence[Spanned], zone: tzinfo) -> None:
    known = {row.number for row in revisions} | {row.number - 1 for row in revisions}
    found = sizes(spans, sorted(known), zone)
    erased = max((row.number for row in revisions if row.cause == ERASE), default=0)
    for row in revisions:
        if row.number > erased:
            row.tokens_before = found[row.number - 1]
        if row.number >= erased:
            row.tokens_after = found[row.number]


def _store(model: Any, rows: Iterable[Any], *fields: str) -> None:
    model.objects.bulk_update(list(rows), fields, batch_size=AT_ONCE)
