"""Answer for resources and their conversations."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Query, Router, Schema, Status

from agents.access import Right, author, require, resource_or_404, resources_for, threads_for
from agents.audit import note_act
from agents.models import AgentProfile
from agents.services import discard
from agents.services.fork import fork
from agents.services.thread import start
from agents.studio.threads import export
from agents.studio.threads.fate import fates_of
from memory.models import Thread, holding
from memory.services import shelve

from .paging import Asked, Page, key, moment, page, read
from .problems import Problem
from .reach import thread_for
from .shapes import AgentOut, ResourceOut, ThreadOut, agent_out, resource_out, thread_out

router = Router(tags=["Conversations"])


class NewThread(Schema):
    """Say whose conversation to begin, and with which agent; a temporary one is forgotten."""

    resource: str
    agent: str = ""
    title: str = ""
    temporary: bool = False


class ThreadChanges(Schema):
    """Say what to change; what is left out stays."""

    title: str | None = None
    archived: bool | None = None


class Fork(Schema):
    """Say after which message the new conversation goes its own way; 0 begins anew."""

    position: int
    title: str = ""
    reason: str = ""


@router.get("/resources", response=Page[ResourceOut], summary="List resources")
def resources(request: HttpRequest, asked: Query[Asked]) -> dict[str, Any]:
    """List the resources you may see, by key."""
    rows = resources_for(request.user).distinct().order_by("key")
    after = read(asked.cursor, str)
    if after is not None:
        rows = rows.filter(key__gt=after[0])
    found = list(rows[: asked.limit + 1])
    return page(found, asked.limit, resource_out, lambda row: (row.key,))


@router.get("/resources/{resource_key}", response=ResourceOut, summary="Read a resource")
def resource(request: HttpRequest, resource_key: str) -> dict[str, Any]:
    """Describe one resource."""
    return resource_out(resource_or_404(request, resource_key))


@router.get("/agents", response=list[AgentOut], summary="List agents")
def agents(request: HttpRequest) -> list[dict[str, Any]]:
    """List the agents that a conversation can be begun with, the usual one first."""
    return [agent_out(row) for row in AgentProfile.objects.order_by("pk")]


@router.get("/threads", response=Page[ThreadOut], summary="List conversations")
def threads(
    request: HttpRequest,
    asked: Query[Asked],
    resource: str = "",
    search: str = "",
    archived: bool = False,
) -> dict[str, Any]:
    """List conversations, the latest first; those of one resource, or whose title holds a text."""
    rows = threads_for(request.user).filter(archived_at__isnull=not archived)
    if resource:
        rows = rows.filter(resource=resource_or_404(request, resource))
    if search:
        rows = rows.filter(holding("title", search))
    found = list(_after(rows, asked)[: asked.limit + 1])
    return page(found, asked.limit, thread_out, lambda row: (row.last_active_at, row.pk))


def _after(rows: QuerySet[Thread], asked: Asked) -> QuerySet[Thread]:
    after = read(asked.cursor, moment, key)
    if after is not None:
        at, pk = after
        rows = rows.filter(Q(last_active_at__lt=at) | Q(last_active_at=at, pk__lt=pk))
    return rows.select_related("resource").distinct().order_by("-last_active_at", "-pk")


@router.post("/threads", response={201: ThreadOut}, summary="Begin a conversation")
def create(request: HttpRequest, given: NewThread) -> Status[dict[str, Any]]:
    """Begin a conversation; without an agent, with the first there is."""
    owner = resource_or_404(request, given.resource)
    require(request, Right.CHAT, owner)
    thread = start(owner, _agent(given.agent), temporary=given.temporary)
    if given.title.strip():
        shelve.rename(thread.pk, given.title)
    return Status(201, thread_out(_again(thread)))


def _agent(slug: str) -> AgentProfile:
    if slug:
        return get_object_or_404(AgentProfile, slug=slug)
    first = AgentProfile.objects.order_by("pk").first()
    if first is None:
        raise Problem(409, "There is no agent yet. Make one first.")
    return first


def _again(thread: Thread) -> Thread:
    return Thread.objects.select_related("resource").get(pk=thread.pk)


@router.get("/threads/{uuid:thread_id}", response=ThreadOut, summary="Read a conversation")
def thread(request: HttpRequest, thread_id: UUID) -> dict[str, Any]:
    """Describe one conversation."""
    return thread_out(thread_for(request, thread_id))


@router.patch(
    "/threads/{uuid:thread_id}", response=ThreadOut, summary="Rename or archive a conversation"
)
def change(request: HttpRequest, thread_id: UUID, given: ThreadChanges) -> dict[str, Any]:
    """Rename a conversation, put it away, or take it back."""
    found = thread_for(request, thread_id, Right.EDIT)
    if given.title is not None:
        shelve.rename(thread_id, given.title)
    if given.archived is not None:
        (shelve.archive if given.archived else shelve.unarchive)(thread_id)
    return thread_out(_again(found))


@router.delete("/threads/{uuid:thread_id}", response={204: None}, summary="Delete a conversation")
def delete(request: HttpRequest, thread_id: UUID, confirm: str = "") -> Status[None]:
    """Delete a conversation; for a moment it can be brought back, then it is erased.

    Where others lose by it, `confirm` must be its id.
    """
    found = thread_for(request, thread_id, Right.EDIT)
    (fate,) = fates_of([found])
    if fate.shared and confirm != str(thread_id):
        raise Problem(409, f"{fate.words} To delete it all the same, send its id as confirm.")
    discard.discard(thread_id)
    note_act(request, "delete", resource=found.resource, thread=thread_id)
    return Status(204, None)


@router.post("/threads/{uuid:thread_id}/undelete", response=ThreadOut, summary="Undo a deletion")
def undelete(request: HttpRequest, thread_id: UUID) -> dict[str, Any]:
    """Bring a deleted conversation back that is not erased yet."""
    mine = Thread.objects.filter(resource__in=resources_for(request.user, lab=True))
    found = get_object_or_404(mine.select_related("resource"), pk=thread_id)
    require(request, Right.EDIT, found.resource)
    if not discard.bring_back(thread_id):
        raise Problem(409, "This conversation is erased for good.")
    return thread_out(_again(found))


@router.post(
    "/threads/{uuid:thread_id}/fork", response={201: ThreadOut}, summary="Fork a conversation"
)
def forked(request: HttpRequest, thread_id: UUID, given: Fork) -> Status[dict[str, Any]]:
    """Begin a conversation as a copy of another up to a message, with what is remembered of it."""
    thread_for(request, thread_id, Right.CHAT)
    child = fork(
        thread_id,
        given.position,
        title=given.title,
        author=author(request),
        reason=given.reason,
    )
    return Status(201, thread_out(_again(child)))


@router.get(
    "/threads/{uuid:thread_id}/export",
    summary="Export a conversation",
    openapi_extra={
        "responses": {200: {"description": "The conversation, as Markdown or as JSON Lines."}}
    },
)
def exported(
    request: HttpRequest, thread_id: UUID, format: Literal["md", "jsonl"] = "md"
) -> HttpResponse:
    """Write a conversation out, as Markdown to read or as JSON Lines to work with."""
    found = thread_for(request, thread_id)
    write = {"md": export.markdown, "jsonl": export.jsonl}[format]
    kind = {"md": "text/markdown", "jsonl": "application/jsonl"}[format]
    text = "".join(write(found, timezone.now()))
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8")
