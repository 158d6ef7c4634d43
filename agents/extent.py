"""Say how large a conversation is, how far memory covers it, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import Thread
from memory.models.swift import converter
from memory.models.thread import UNTITLED

LATEST_THREADS = 100


@dataclass(frozen=True)
class Coverage:
    """Hold how far a thread is covered by visible memory, and how far ahead it is buffered."""

    covered: int = 0
    buffered: int = 0

    def of(self, position: int) -> str:
        """Return where the message at a position stands: covered, buffered or neither."""
        if position <= self.covered:
            return "covered"
        return "buffered" if position <= self.buffered else ""


@dataclass(frozen=True)
class Extent:
    """Hold how many messages a thread has and how many tokens of them are not yet covered."""

    messages: int
    pending_tokens: int


@dataclass(frozen=True)
class Listed:
    """Name a thread of a list, and what is running in it: a turn, or a cycle of some kind."""

    pk: UUID
    title: str
    last_active_at: datetime
    answering: bool
    cycle_kind: str | None


# Written by hand: it is asked for with nearly each event, and the ORM takes longer to compose
# it and to make rows of whole threads than the database to answer.
_LISTED = """
SELECT t.id, t.title, t.last_active_at,
  EXISTS (SELECT 1 FROM agents_turn u WHERE u.thread_id = t.id AND u.status = 'running'),
  (SELECT c.kind FROM memory_cycle c WHERE c.thread_id = t.id AND c.status = 'running'
   ORDER BY c.started_at DESC LIMIT 1)
FROM memory_thread t
WHERE t.resource_id = %s AND t.deleted_at IS NULL AND t.archived_at IS NULL AND NOT t.is_lab
ORDER BY t.last_active_at DESC, t.id DESC LIMIT %s
"""


def threads_of(resource_id: int) -> list[Listed]:
    """Return the newest threads of a resource, each with what is running in it."""
    with connection.cursor() as cursor:
        cursor.execute(_LISTED, [resource_id, LATEST_THREADS])
        rows = cursor.fetchall()
    fields: Any = Thread._meta
    key, at = (converter(fields.get_field(name)) for name in ("id", "last_active_at"))
    return [
        Listed(key(pk), title or UNTITLED, at(active), bool(answering), kind)
        for pk, title, active, answering, kind in rows
    ]
