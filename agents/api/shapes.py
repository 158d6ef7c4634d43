"""Say what things look like as JSON, and make it of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from ninja import Schema

from agents.models import AgentProfile, RequestSnapshot, Turn
from memory.models import Cycle, Line, Message, Observation, Resource, Revision, Thread


class ResourceOut(Schema):
    """Describe whose memory it is."""

    key: str
    name: str
    time_zone: str
    scope: str


class AgentOut(Schema):
    """Describe an agent: what it is for, which model it has, and whether it remembers."""

    slug: str
    name: str
    about: str
    model_name: str
    remembers: bool


class ThreadOut(Schema):
    """Describe a conversation; ``messages`` is the position of its newest message."""

    id: UUID
    resource: str
    title: str
    title_pinned: bool
    agent: str
    remembers: bool
    messages: int
    created_at: datetime
    last_active_at: datetime
    archived_at: datetime | None
    parent: UUID | None
    fork_position: int | None
    is_lab: bool


class MessageOut(Schema):
    """Describe a message; ``payload`` is all of it, as stored, where it was asked for."""

    position: int
    kind: str
    text: str
    tokens: int
    model: str
    created_at: datetime
    payload: dict[str, Any] | None = None


class TurnOut(Schema):
    """Describe a prompt and its answer; ``text`` is what the agent said, as far as it is stored."""

    thread: UUID
    number: int
    status: str
    prompt: str
    text: str
    error: str
    usage: dict[str, Any]
    model: str
    cost: Decimal | None
    first_position: int | None
    last_position: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RequestOut(Schema):
    """Describe what one model request of a turn held; a block's text is kept under its hash."""

    step: int
    revision: int
    total: int
    cacheable: int
    blocks: list[dict[str, Any]]
    created_at: datetime


class LineOut(Schema):
    """Describe a line of memory and the messages it rests on."""

    id: UUID
    observation: UUID
    kind: str
    text: str
    tokens: int
    said_at: datetime | None
    pinned: bool
    first_position: int | None
    last_position: int | None
    since: int | None
    until: int | None
    replaces: UUID | None


class ObservationOut(Schema):
    """Describe an observation, a reflection or a note; without ``since`` it waits, unseen."""

    id: UUID
    kind: str
    thread: UUID | None
    first_position: int | None
    last_position: int | None
    message_tokens: int
    tokens: int
    generation: int
    since: int | None
    discarded_at: datetime | None
    cycle: UUID | None


class RevisionOut(Schema):
    """Describe one change of a memory: why, by whom, and how large it was before and after."""

    number: int
    cause: str
    author: str | None
    reason: str
    trigger: str
    thread: UUID | None
    cycle: UUID | None
    tokens_before: int
    tokens_after: int
    created_at: datetime


class CycleOut(Schema):
    """Describe one run of an Observer or a Reflector, with what it cost."""

    id: UUID
    kind: str
    status: str
    trigger: str
    thread: UUID | None
    first_position: int | None
    last_position: int | None
    attempt: int
    started_at: datetime
    finished_at: datetime | None
    next_attempt_at: datetime | None
    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    error: str
    note: str


def resource_out(row: Resource) -> dict[str, Any]:
    """Return a resource."""
    return _taken(row, ResourceOut)


def agent_out(row: AgentProfile) -> dict[str, Any]:
    """Return an agent."""
    return _taken(row, AgentOut)


def thread_out(row: Thread) -> dict[str, Any]:
    """Return a thread, which must come with its resource."""
    more = {"resource": row.resource.key, "messages": row.last_position, "parent": row.parent_id}
    return _taken(row, ThreadOut, more)


def message_out(row: Message, *, whole: bool = False) -> dict[str, Any]:
    """Return a message, with all of it if asked."""
    return _taken(row, MessageOut, {"payload": row.payload if whole else None})


def turn_out(row: Turn, text: str) -> dict[str, Any]:
    """Return a turn with what was answered."""
    return _taken(row, TurnOut, {"thread": row.thread_id, "text": text})


def request_out(row: RequestSnapshot) -> dict[str, Any]:
    """Return what a request held."""
    return _taken(row, RequestOut)


def line_out(row: Line) -> dict[str, Any]:
    """Return a line."""
    more = {"observation": row.observation_id, "replaces": row.replaces_id}
    return _taken(row, LineOut, more)


def observation_out(row: Observation) -> dict[str, Any]:
    """Return an observation."""
    return _taken(row, ObservationOut, {"thread": row.thread_id, "cycle": row.cycle_id})


def revision_out(row: Revision) -> dict[str, Any]:
    """Return a revision, which must come with its author."""
    author = None if row.author is None else row.author.get_username()
    more = {"author": author, "thread": row.thread_id, "cycle": row.cycle_id}
    return _taken(row, RevisionOut, more)


def cycle_out(row: Cycle) -> dict[str, Any]:
    """Return a cycle."""
    return _taken(row, CycleOut, {"thread": row.thread_id})


def _taken(row: Any, shape: type[Schema], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    given = more or {}
    return {
        name: given[name] if name in given else getattr(row, name) for name in shape.model_fields
    }


def said(payload: Mapping[str, Any]) -> str:
    """Return what the agent says in a stored response, texts joined as they are streamed."""
    text = ""
    for part in payload["parts"]:
        if part["part_kind"] == "text":
            text += ("\n\n" if text else "") + part["content"]
    return text


def answered(payloads: Iterable[Mapping[str, Any]]) -> str:
    """Return what the agent says in the responses of a turn, step by step."""
    return "\n\n".join(filter(None, map(said, payloads)))
