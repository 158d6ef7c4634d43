"""Answer for revisions and cycles: what changed memory, and what worked on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from agents.access import author, resources_for
from agents.audit import note_reading
from agents.secrets import masked
from memory.models import Blob, Cycle, Observation, Revision
from memory.services import history

from .paging import Asked, Page, newest, number, page, read
from .reach import record_for
from .shapes import (
    CycleOut,
    LineOut,
    ObservationOut,
    RevisionOut,
    cycle_out,
    line_out,
    observation_out,
    revision_out,
)

router = Router(tags=["History"])


class Changed(Schema):
    """Hold a line before and after."""

    before: LineOut
    after: LineOut


class Comparison(Schema):
    """Say what differs between two revisions."""

    added: list[LineOut]
    removed: list[LineOut]
    changed: list[Changed]
    tokens: int


class WholeCycle(CycleOut):
    """Describe a cycle with what was asked, what was replied and what was made of it."""

    request: str | None
    reply: str | None
    observations: list[ObservationOut]


class Between(Schema):
    """Name two revisions."""

    first: int = Field(ge=0, le=2**62)
    second: int = Field(ge=0, le=2**62)


@router.get(
    "/threads/{uuid:thread_id}/revisions", response=Page[RevisionOut], summary="List revisions"
)
def revisions(request: HttpRequest, thread_id: UUID, asked: Query[Asked]) -> dict[str, Any]:
    """List the changes of a memory, the latest first."""
    record = record_for(request, thread_id)
    after = read(asked.cursor, number)
    found = (
        history.revisions(record.pk, limit=asked.limit + 1, before=after[0] if after else None)
        if record
        else []
    )
    return page(found, asked.limit, revision_out, lambda row: (row.number,))


@router.get(
    "/threads/{uuid:thread_id}/revisions/compare",
    response=Comparison,
    summary="Compare two revisions",
)
def compare(request: HttpRequest, thread_id: UUID, between: Query[Between]) -> dict[str, Any]:
    """Tell what changed from one revision to another, versions of one line paired."""
    record = record_for(request, thread_id)
    if record is None:
        raise Http404
    found = history.compare(record.pk, between.first, between.second)
    return {
        "added": [line_out(line) for line in found.added],
        "removed": [line_out(line) for line in found.removed],
        "changed": [
            {"before": line_out(old), "after": line_out(new)} for old, new in found.changed
        ],
        "tokens": found.tokens,
    }


@router.get(
    "/threads/{uuid:thread_id}/revisions/{int:revision}",
    response=RevisionOut,
    summary="Read a revision",
)
def revision(request: HttpRequest, thread_id: UUID, revision: int) -> dict[str, Any]:
    """Describe one change; its lines are at `memory/lines?revision=`."""
    record = record_for(request, thread_id)
    rows = Revision.objects.filter(record=record, number=revision).select_related("author")
    found = rows.first() if record else None
    if found is None:
        raise Http404
    return revision_out(found)


@router.get("/threads/{uuid:thread_id}/cycles", response=Page[CycleOut], summary="List cycles")
def cycles(
    request: HttpRequest, thread_id: UUID, asked: Query[Asked], status: str = ""
) -> dict[str, Any]:
    """List the runs of Observers and Reflectors, the latest first."""
    record = record_for(request, thread_id)
    rows = Cycle.objects.filter(record=record) if record else Cycle.objects.none()
    if status:
        rows = rows.filter(status=status)
    return newest(rows, asked, cycle_out)


@router.get("/cycles/{uuid:cycle_id}", response=WholeCycle, summary="Read a cycle")
def cycle(request: HttpRequest, cycle_id: UUID) -> dict[str, Any]:
    """Return a run with its request and reply, where they are still kept, and what it wrote.

    What has the shape of a key is masked, as on the page of the call.
    """
    seen = Cycle.objects.filter(record__resource__in=resources_for(request.user, lab=True))
    found = seen.select_related("record__resource").filter(pk=cycle_id).first()
    if found is None:
        raise Http404
    resource = found.record.resource
    if not resource.members.filter(pk=author(request).pk).exists():
        note_reading(request, resource)
    hashes = [found.request_hash, found.reply_hash]
    texts = dict(Blob.objects.filter(hash__in=hashes).values_list("hash", "text"))
    rows = Observation.objects.filter(cycle=found).order_by("pk")
    return {
        **cycle_out(found),
        "request": masked(texts.get(found.request_hash)),
        "reply": masked(texts.get(found.reply_hash)),
        "observations": [observation_out(row) for row in rows],
    }
