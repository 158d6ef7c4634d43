"""Answer for memory: what it is at, its lines at any revision, and every change of them."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from agents.access import Right, author
from agents.audit import note_act
from memory.models import Cycle, Line, Message, Observation
from memory.services import clear as clearing
from memory.services import edit as editing
from memory.services import forget as forgetting
from memory.services import history
from memory.services import note as noting
from memory.services import pin as pinning
from memory.services import restore as restoring
from memory.services.look import View, visible_lines
from memory.services.recall import behind

from .paging import Asked, Page, newest, number, read, written
from .problems import Problem
from .reach import line_for, memory_for, record_for, view_for
from .shapes import (
    LineOut,
    MessageOut,
    ObservationOut,
    line_out,
    message_out,
    observation_out,
)

router = Router(tags=["Memory"])


class Reason(Schema):
    """Say why, for the history, and at which revision you saw it."""

    reason: str = ""
    expected: int | None = Field(None, description="Fail with 409 if it changed after this one.")


class Edit(Reason):
    """Say what a line is to say."""

    text: str
    kind: str | None = None


class Note(Schema):
    """Say what to remember."""

    text: str
    kind: str = Line.Kind.HIGH.value
    reason: str = ""


class To(Schema):
    """Name a revision to go back to, or to undo."""

    revision: int
    reason: str = ""


class Why(Schema):
    """Say why, for the history."""

    reason: str = ""


NO_REASON, NO_WHY = Reason(expected=None), Why()


class Made(Schema):
    """Name the revision that a change made."""

    revision: int


class Cleared(Made):
    """Say what a clear took out of sight, and what it left."""

    lines: int
    chunks: int
    left: int


@router.get(
    "/threads/{uuid:thread_id}/memory",
    response=dict[str, Any],
    summary="Read the state of a memory",
)
def status(request: HttpRequest, thread_id: UUID) -> dict[str, Any]:
    """Tell how full the memory of a conversation is and what works on it.

    `windows`, `recordId`, `threadId` and `generationCount` are as in Mastra's `data-om-status`.
    """
    return _status(view_for(request, thread_id))


def _status(view: View) -> dict[str, Any]:
    record, snapshot = view.record, view.snapshot()
    limits = view.options.thresholds().given(view.tokens)
    working = Cycle.objects.running().filter(record=record.pk)
    kinds = set(working.values_list("kind", flat=True)) if not record._state.adding else set()
    return {
        "recordId": str(record.pk) if not record._state.adding else None,
        "threadId": str(view.thread.pk),
        "resourceId": view.thread.resource.key,
        "scope": record.scope,
        "revision": record.revision,
        "generationCount": record.generation,
        "windows": {
            "active": {
                "messages": {"tokens": snapshot.pending_tokens, "threshold": limits.observe},
                "observations": {"tokens": view.tokens, "threshold": limits.reflect},
            },
            "buffered": _buffered(view, kinds),
        },
        "ceilings": {"messages": limits.ceiling, "observations": limits.reflect_ceiling},
        "retentionFloor": limits.floor,
        "observedThrough": view.observed_through,
        "lastPosition": view.thread.last_position,
        "currentTask": view.hints.current_task,
        "suggestedResponse": view.hints.suggested_response,
        "running": sorted(kinds),
    }


def _buffered(view: View, kinds: set[str]) -> dict[str, Any]:
    chunks = view.snapshot().chunks
    tokens = sum(chunk.message_tokens for chunk in chunks)
    waiting = view.reflection
    return {
        "observations": {
            "chunks": len(chunks),
            "messageTokens": tokens,
            "projectedMessageRemoval": tokens,
            "observationTokens": sum(chunk.tokens for chunk in chunks),
            "status": _word(kinds & {"buffer", "observe"}, bool(chunks)),
        },
        "reflection": {
            "inputObservationTokens": waiting.source_tokens if waiting else 0,
            "observationTokens": waiting.tokens if waiting else 0,
            "status": _word(kinds & {"buffer_reflection", "reflect"}, waiting is not None),
        },
    }


def _word(running: object, complete: bool) -> str:
    return "running" if running else "complete" if complete else "idle"


@router.get("/threads/{uuid:thread_id}/memory/lines", response=Page[LineOut], summary="List lines")
def lines(
    request: HttpRequest, thread_id: UUID, asked: Query[Asked], revision: int | None = None
) -> dict[str, Any]:
    """List the lines the agent sees, in its order; or those it saw as of a revision."""
    record = record_for(request, thread_id)
    if record is None:
        return {"items": [], "next": None}
    at, start = read(asked.cursor, number, number) or (revision, 0)
    at = record.revision if at is None else at
    if not 0 <= at <= record.revision or start < 0:
        raise Problem(404, f"There is no revision {at}; the latest is {record.revision}.")
    # A past revision never changes, so that a place in it is a place for good.
    found = visible_lines(record.pk, at)
    shown = found[start : start + asked.limit]
    end = start + asked.limit
    return {
        "items": [line_out(line) for line in shown],
        "next": written(at, end) if end < len(found) else None,
    }


@router.get(
    "/threads/{uuid:thread_id}/memory/observations",
    response=Page[ObservationOut],
    summary="List observations",
)
def observations(
    request: HttpRequest,
    thread_id: UUID,
    asked: Query[Asked],
    kind: Literal["", "observation", "reflection", "note", "discarded"] = "",
) -> dict[str, Any]:
    """List what Observers, Reflectors and people wrote, the newest first; buffered rows too."""
    record = record_for(request, thread_id)
    rows = Observation.objects.filter(record=record) if record else Observation.objects.none()
    if kind:
        rows = rows.filter(kind=kind)
    return newest(rows, asked, observation_out)


@router.post(
    "/threads/{uuid:thread_id}/memory/notes", response={201: LineOut}, summary="Write a note"
)
def note(request: HttpRequest, thread_id: UUID, given: Note) -> Status[dict[str, Any]]:
    """Write a line of your own; no reflection condenses it."""
    record = memory_for(request, thread_id, Right.EDIT)
    made = noting.note(
        record.pk,
        given.text,
        kind=given.kind,
        thread_id=thread_id if record.thread_id is None else None,
        author=author(request),
        reason=given.reason,
    )
    return Status(201, line_out(made))


@router.post(
    "/threads/{uuid:thread_id}/memory/restore", response=Made, summary="Restore a revision"
)
def restore(request: HttpRequest, thread_id: UUID, given: To) -> dict[str, int]:
    """Show again what was visible at a revision, with what was observed since."""
    record = memory_for(request, thread_id, Right.EDIT)
    made = restoring.restore(record.pk, given.revision, author=author(request), reason=given.reason)
    return {"revision": made}


@router.post("/threads/{uuid:thread_id}/memory/undo", response=Made, summary="Undo a change")
def undo(request: HttpRequest, thread_id: UUID, given: To) -> dict[str, int]:
    """Undo the change that a revision made, and nothing else."""
    record = memory_for(request, thread_id, Right.EDIT)
    made = history.undo(record.pk, given.revision, author=author(request), reason=given.reason)
    return {"revision": made}


@router.post("/threads/{uuid:thread_id}/memory/clear", response=Cleared, summary="Clear a memory")
def clear(request: HttpRequest, thread_id: UUID, given: Why = NO_WHY) -> dict[str, int]:
    """Take everything out of sight; restoring brings it back."""
    record = memory_for(request, thread_id, Right.EDIT)
    done = clearing.clear(
        record.pk, thread_id=thread_id, author=author(request), reason=given.reason
    )
    numbers = {"lines": done.lines, "chunks": done.chunks, "left": done.left}
    note_act(
        request,
        "clear",
        resource=record.resource,
        thread=thread_id,
        reason=given.reason,
        numbers=numbers,
    )
    return {"revision": done.revision, **numbers}


@router.get("/lines/{uuid:line_id}", response=LineOut, summary="Read a line")
def line(request: HttpRequest, line_id: UUID) -> dict[str, Any]:
    """Return a line, whether it is visible or not."""
    return line_out(line_for(request, line_id))


@router.get(
    "/lines/{uuid:line_id}/sources", response=list[MessageOut], summary="Read the sources of a line"
)
def sources(request: HttpRequest, line_id: UUID) -> list[dict[str, Any]]:
    """Return the messages a line rests on."""
    found: list[Message] = list(behind(line_for(request, line_id)))
    return [message_out(message) for message in found]


@router.patch("/lines/{uuid:line_id}", response=LineOut, summary="Edit a line")
def edit(request: HttpRequest, line_id: UUID, given: Edit) -> dict[str, Any]:
    """Let a line say something else; the answer is its successor.

    A line that was changed meanwhile is a conflict (409) that tells both texts.
    """
    line_for(request, line_id, Right.EDIT)
    made = editing.edit(
        line_id,
        given.text,
        kind=given.kind,
        author=author(request),
        reason=given.reason,
        expected=given.expected,
    )
    return line_out(made)


@router.post("/lines/{uuid:line_id}/pin", response=LineOut, summary="Pin a line")
def pin(request: HttpRequest, line_id: UUID, given: Reason = NO_REASON) -> dict[str, Any]:
    """Pin a line, so that every reflection leaves it standing; the answer is its successor."""
    line_for(request, line_id, Right.EDIT)
    (made,) = pinning.pin(line_id, author=author(request), **given.model_dump())
    return line_out(made)


@router.post("/lines/{uuid:line_id}/unpin", response=LineOut, summary="Unpin a line")
def unpin(request: HttpRequest, line_id: UUID, given: Reason = NO_REASON) -> dict[str, Any]:
    """Let reflections condense a line again; the answer is its successor."""
    line_for(request, line_id, Right.EDIT)
    (made,) = pinning.unpin(line_id, author=author(request), **given.model_dump())
    return line_out(made)


@router.post("/lines/{uuid:line_id}/forget", response=Made, summary="Forget a line")
def forget(request: HttpRequest, line_id: UUID, given: Reason = NO_REASON) -> dict[str, int]:
    """Take a line out of sight; it stays in history."""
    line_for(request, line_id, Right.EDIT)
    return {"revision": forgetting.forget([line_id], author=author(request), **given.model_dump())}


@router.post("/lines/{uuid:line_id}/unforget", response=LineOut, summary="Show a line again")
def unforget(request: HttpRequest, line_id: UUID, given: Why = NO_WHY) -> dict[str, Any]:
    """Show a forgotten line again; the answer is the copy that does."""
    line_for(request, line_id, Right.EDIT)
    return line_out(forgetting.unforget(line_id, author=author(request), reason=given.reason))
