"""Show how full each record is and what works on it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, TextIO
from uuid import UUID

from django.db.models import Max, Q, Sum

from memory.config import effective
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Thread

from .table import write_json, write_table

HELP = "Show each record: revision, gauges, and the cycles that run or failed."
COLUMNS = {
    "record": "record",
    "scope": "scope",
    "title": "title",
    "revision": "revision",
    "generation": "generation",
    "pending": "pending tokens",
    "observed": "observation tokens",
    "running": "running",
    "failed": "failed",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(out: TextIO, *, json: bool) -> int:
    """Write the open records, the oldest first."""
    records = MemoryRecord.objects.filter(closed_at=None).select_related("thread", "resource")
    rows = [_row(record) for record in records.order_by("created_at", "pk")]
    if json:
        write_json(out, {"records": rows})
    elif rows:
        write_table(out, COLUMNS, map(_with_gauges, rows))
    else:
        out.write("Nothing is remembered yet: there are no records.\n")
    return 0


def _row(record: MemoryRecord) -> dict[str, Any]:
    thread = record.thread
    observe, reflect = _thresholds(record, thread)
    lines = Line.objects.as_of(record.pk, record.revision)
    cycles = Cycle.objects.filter(record=record)
    return {
        "record": record.pk,
        "scope": record.scope,
        "thread": thread.pk if thread else None,
        "title": str(thread or record.resource),
        "revision": record.revision,
        "generation": record.generation,
        "pending_tokens": sum(_pending(record, thread_id) for thread_id in _threads(record)),
        "pending_threshold": observe,
        "observation_tokens": lines.aggregate(total=Sum("tokens"))["total"] or 0,
        "observation_threshold": reflect,
        "running": cycles.running().count(),
        "failed": cycles.filter(status=Cycle.Status.FAILED).count(),
    }


def _thresholds(record: MemoryRecord, thread: Thread | None) -> tuple[int, int]:
    thresholds = effective(thread.agent if thread else "", record.config).thresholds()
    return thresholds.observe, thresholds.reflect


def _threads(record: MemoryRecord) -> list[UUID]:
    of_record = Q(pk=record.thread_id) | Q(cursors__record=record)
    return list(Thread.objects.filter(of_record).distinct().values_list("pk", flat=True))


def _pending(record: MemoryRecord, thread_id: UUID) -> int:
    covering = Observation.objects.covering(record.pk, record.revision).filter(thread=thread_id)
    through = covering.aggregate(last=Max("last_position"))["last"] or 0
    raw = Message.objects.above(thread_id, through).order_by()
    return raw.aggregate(total=Sum("tokens"))["total"] or 0


def _with_gauges(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "pending": _gauge(row["pending_tokens"], row["pending_threshold"]),
        "observed": _gauge(row["observation_tokens"], row["observation_threshold"]),
    }


def _gauge(tokens: int, threshold: int) -> str:
    return f"{tokens:,} / {threshold:,}"
