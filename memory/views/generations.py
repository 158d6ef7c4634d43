"""Show the reflections of a record, newest first."""

from __future__ import annotations

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from memory.models import Line, MemoryRecord, Observation, Revision

from .alone import partial_or_page
from .lines import LETTERS

MOST = 20


@require_GET
def generations(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Show what each reflection made of the observations before it."""
    mine = MemoryRecord.objects.filter(resource__members=request.user)  # type: ignore[misc]
    record = get_object_or_404(mine.select_related("resource"), pk=record_id)
    zone = ZoneInfo(record.resource.time_zone)
    reflections = (
        Observation.objects.filter(record=record, kind=Observation.Kind.REFLECTION)
        .filter(since__isnull=False, since__lte=record.revision)
        .order_by("-since")
        .select_related("cycle")
        .prefetch_related(Prefetch("lines", Line.objects.order_by("ordinal", "id")))
    )[:MOST]
    shown = list(reflections)
    revisions = {
        revision.number: revision
        for revision in Revision.objects.filter(
            record=record, number__in=[each.since for each in shown]
        )
    }
    context = {
        "generations": [_shown(each, revisions.get(each.since or 0), zone) for each in shown]
    }
    return partial_or_page(
        request, "memory/generations.html", context, title="Generations", thread=record.thread_id
    )


def _shown(each: Observation, revision: Revision | None, zone: ZoneInfo) -> dict[str, Any]:
    at = revision.created_at.astimezone(zone) if revision else None
    change = f"{revision.tokens_before} → {revision.tokens_after} tokens" if revision else ""
    return {
        "number": each.generation,
        "at": at.isoformat() if at else "",
        "clock": f"{at.day} {at:%b %Y %H:%M}" if at else "",
        "model": each.cycle.model if each.cycle else "",
        "words": change,
        "lines": [{"letter": LETTERS[line.kind], "text": line.text} for line in each.lines.all()],
    }
