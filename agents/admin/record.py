"""Read what the page of a record shows, tab by tab, in as many statements however large it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from django.core import serializers
from django.db.models import Count

from memory.models import Cursor, Cycle, MemoryRecord, Observation, Revision
from memory.services.look import visible_lines
from memory.services.sizes import size_of

TABS = {
    "overview": "Overview",
    "lines": "Lines",
    "revisions": "Revisions",
    "buffered": "Buffered",
    "raw": "Raw JSON",
}
AT_ONCE = 100
RAW_ROWS = 200


@dataclass(frozen=True)
class RecordPage:
    """Hold one tab of a record's page; ``older`` is where the next part of it begins."""

    tab: str
    tabs: Sequence[tuple[str, str]]
    rows: Sequence[Any] = ()
    facts: Sequence[tuple[str, object]] = ()
    older: str = ""
    text: str = ""
    cursors: Sequence[Cursor] = ()
    cycles: Sequence[Cycle] = field(default=())


def page_of(record: MemoryRecord, tab: str, start: str) -> RecordPage:
    """Return a tab of a record; the overview for one there is not."""
    tab = tab if tab in TABS else "overview"
    begin = int(start[:12]) if start.isascii() and start.isdigit() else None
    known = {"tab": tab, "tabs": tuple(TABS.items())}
    return RecordPage(**known, **_READ[tab](record, begin))  # type: ignore[arg-type]


def _overview(record: MemoryRecord, begin: int | None) -> dict[str, Any]:
    lines = visible_lines(record.pk, record.revision)
    tokens = size_of(lines, ZoneInfo(record.resource.time_zone))
    kinds = Observation.objects.filter(record=record).order_by().values_list("kind")
    counted = dict(kinds.annotate(count=Count("pk")))
    cursors = Cursor.objects.filter(record=record).select_related("thread").order_by("-pk")
    cycles = Cycle.objects.filter(record=record).select_related("thread").order_by("-pk")
    return {
        "facts": [
            ("Scope", record.scope),
            ("Resource", record.resource.key),
            ("Revision", f"{record.revision:,}"),
            ("Epoch", f"{record.epoch:,}"),
            ("Generation", f"{record.generation:,}"),
            ("Visible lines", f"{len(lines):,}"),
            ("Tokens of them", f"{tokens:,}"),
            *((f"Rows: {kind}", f"{count:,}") for kind, count in sorted(counted.items())),
            ("Made", f"{record.created_at:%d %b %Y %H:%M}"),
            ("Closed", f"{record.closed_at:%d %b %Y %H:%M}" if record.closed_at else "no"),
        ],
        "text": json.dumps(record.config, ensure_ascii=False, indent=2),
        "cursors": list(cursors[:AT_ONCE]),
        "cycles": list(cycles[:10]),
    }


def _lines(record: MemoryRecord, begin: int | None) -> dict[str, Any]:
    begin = begin or 0
    found = visible_lines(record.pk, record.revision)
    end = begin + AT_ONCE
    return {"rows": found[begin:end], "older": str(end) if end < len(found) else ""}


def _revisions(record: MemoryRecord, begin: int | None) -> dict[str, Any]:
    rows = Revision.objects.filter(record=record).select_related("author", "cycle")
    if begin is not None:
        rows = rows.filter(number__lt=begin)
    found = list(rows.order_by("-number")[: AT_ONCE + 1])
    more = len(found) > AT_ONCE
    return {"rows": found[:AT_ONCE], "older": str(found[AT_ONCE - 1].number) if more else ""}


def _buffered(record: MemoryRecord, begin: int | None) -> dict[str, Any]:
    waiting = Observation.objects.filter(record=record, since=None, discarded_at=None)
    rows = waiting.select_related("thread", "cycle").order_by("thread_id", "first_position")
    return {"rows": list(rows.annotate(of_lines=Count("lines"))[:AT_ONCE])}


def _raw(record: MemoryRecord, begin: int | None) -> dict[str, Any]:
    rows: list[Any] = [record]
    for model in (Cursor, Cycle, Revision, Observation):
        rows += list(model._default_manager.filter(record=record).order_by("-pk")[:RAW_ROWS])
    text = serializers.serialize("json", rows, indent=2, ensure_ascii=False)
    return {"text": text}


_READ = {
    "overview": _overview,
    "lines": _lines,
    "revisions": _revisions,
    "buffered": _buffered,
    "raw": _raw,
}
