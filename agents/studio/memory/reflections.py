"""List the reflections of a record, newest first, with what each made of the lines before it."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from django.db.models import Prefetch

from agents import words
from agents.lines import LineShown, line_shown
from memory.models import Line, MemoryRecord, Observation, Revision

MOST = 20


@dataclass(frozen=True)
class Reflected:
    """Show one reflection."""

    number: int
    at: str
    clock: str
    model: str
    words: str
    href: str
    lines: tuple[LineShown, ...]


def reflections_of(record: MemoryRecord) -> list[Reflected]:
    """Return what the page of generations lists."""
    zone = ZoneInfo(record.resource.time_zone)
    shown = list(_rows(record)[:MOST])
    revisions = Revision.objects.filter(record=record, number__in=[row.since for row in shown])
    made_at = {revision.number: revision for revision in revisions}
    return [_shown(record, row, made_at.get(row.since or 0), zone) for row in shown]


def _rows(record: MemoryRecord) -> list[Observation]:
    rows = Observation.objects.filter(record=record, kind=Observation.Kind.REFLECTION)
    rows = rows.filter(since__isnull=False, since__lte=record.revision).order_by("-since")
    lines = Line.objects.filter(replaces__isnull=True).order_by("ordinal", "id")
    return list(rows.select_related("cycle").prefetch_related(Prefetch("lines", lines))[:MOST])


def _shown(
    record: MemoryRecord, row: Observation, made: Revision | None, zone: ZoneInfo
) -> Reflected:
    at = made.created_at.astimezone(zone) if made else None
    sizes = (words.tokens(made.tokens_before), words.tokens(made.tokens_after)) if made else ()
    return Reflected(
        number=row.generation,
        at=at.isoformat() if at else "",
        clock=f"{words.day(at)} {words.clock(at)}" if at else "",
        model=row.cycle.model if row.cycle else "",
        words=f"{' → '.join(sizes)} tokens" if sizes else "",
        href=f"{home_of(record)}?rev={row.since}",
        lines=tuple(line_shown(line, zone) for line in row.lines.all()),
    )


def home_of(record: MemoryRecord) -> str:
    """Return the address of a record's page."""
    if record.thread_id is not None:
        return f"/memory/{record.thread_id}/"
    return f"/memory/of/{record.resource.key}/"
