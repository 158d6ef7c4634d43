"""Show how full each record is and what works on it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from json import dumps
from typing import Any, TextIO

from django.core.management.base import CommandError
from django.db.models import Max, Sum
from pydantic import ValidationError

from memory.config import effective, explain, options_of_agent, problems
from memory.models import Cycle, MemoryRecord, Message, Observation, Thread
from memory.services.operate import gauges
from memory.services.sizes import tokens_at

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
OPTIONS = {"option": "option", "value": "value", "source": "set by"}
NOTHING = "Nothing is remembered yet: there are no records.\n"


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("--json", action="store_true", help="write one JSON document")
    parser.add_argument(
        "--options", action="store_true", help="each option in force, and who set it"
    )


def run(out: TextIO, *, json: bool, options: bool = False) -> int:
    """Write the open records, the oldest first, or their options."""
    records = MemoryRecord.objects.filter(closed_at=None).select_related("thread", "resource")
    records = records.order_by("created_at", "pk")
    if options:
        return _write_options(out, list(records), json=json)
    rows = [_row(record) for record in records]
    if json:
        write_json(out, {"records": rows})
    elif rows:
        write_table(out, COLUMNS, map(_with_gauges, rows))
    else:
        out.write(NOTHING)
    return 0


def _write_options(out: TextIO, records: Sequence[MemoryRecord], *, json: bool) -> int:
    found = [(record, _options(record)) for record in records]
    if json:
        write_json(out, {"records": [{"record": r.pk, "options": rows} for r, rows in found]})
        return 0
    for record, rows in found:
        out.write(f"{record.thread or record.resource} (record {record.pk})\n")
        write_table(out, OPTIONS, [{**row, "value": dumps(row["value"])} for row in rows])
    if not found:
        out.write(NOTHING)
    return 0


def _options(record: MemoryRecord) -> list[dict[str, Any]]:
    thread = record.remembering().first()
    of_agent = options_of_agent(thread.agent) if thread else {}
    try:
        settings = explain(of_agent, record.config)
    except ValidationError as error:
        said = "; ".join(problems(error))
        raise CommandError(f"The options of record {record.pk} are not in force: {said}") from None
    return [
        {"option": name, "value": found.value, "source": found.source}
        for name, found in settings.items()
    ]


def _row(record: MemoryRecord) -> dict[str, Any]:
    thread = record.remembering().first()
    observe, reflect = _thresholds(record, thread)
    cycles = Cycle.objects.filter(record=record)
    return {
        "record": record.pk,
        "scope": record.scope,
        "thread": record.thread_id,
        "title": str(record.thread or record.resource),
        "revision": record.revision,
        "generation": record.generation,
        "pending_tokens": _pending(record, thread),
        "pending_threshold": observe,
        "observation_tokens": tokens_at(record.pk, record.revision),
        "observation_threshold": reflect,
        "running": cycles.running().count(),
        "failed": cycles.filter(status=Cycle.Status.FAILED).count(),
    }


def _thresholds(record: MemoryRecord, thread: Thread | None) -> tuple[int, int]:
    thresholds = effective(thread.agent if thread else "", record.config).thresholds()
    return thresholds.observe, thresholds.reflect


def _pending(record: MemoryRecord, thread: Thread | None) -> int:
    if thread is None or not thread.remembers:
        return 0
    if record.thread_id is None:
        return gauges(thread.pk).raw
    covering = Observation.objects.covering(record.pk, record.revision).filter(thread=thread)
    through = covering.aggregate(last=Max("last_position"))["last"] or 0
    raw = Message.objects.above(thread.pk, through).order_by()
    return raw.aggregate(total=Sum("tokens"))["total"] or 0


def _with_gauges(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "pending": _gauge(row["pending_tokens"], row["pending_threshold"]),
        "observed": _gauge(row["observation_tokens"], row["observation_threshold"]),
    }


def _gauge(tokens: int, threshold: int) -> str:
    return f"{tokens:,} / {threshold:,}"
