"""Read what the other conversations of a shared memory hold, without a query for each."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from memory.models import MemoryRecord, Message, Thread
from memory.models.state import State
from memory.models.swift import converter
from memory.models.thread import UNTITLED
from memory.services.kept import Recent, recent
from memory.services.look import view_of
from memory.services.request import others_text

AT_ONCE = 200


@dataclass(frozen=True)
class Tail:
    """Hold how many messages of a conversation memory has not observed, and their tokens."""

    thread: UUID
    title: str
    messages: int
    tokens: int


def threads_in(record: MemoryRecord) -> QuerySet[Thread]:
    """Select the conversations whose memory is in a shared record."""
    own = MemoryRecord.objects.filter(
        scope=MemoryRecord.Scope.THREAD, thread=OuterRef("pk"), closed_at__isnull=True
    )
    return Thread.objects.there().filter(~Exists(own), resource=record.resource_id, remembers=True)


# As ``threads_in``, each with how far the record covers it at a revision.
_COVERED = """
SELECT t.id, t.title, t.last_position, COALESCE(
  (SELECT MAX(o.last_position) FROM memory_observation o
   WHERE o.record_id = m.id AND o.thread_id = t.id AND o.kind = 'observation' AND o.since <= %s), 0)
FROM memory_memoryrecord m
JOIN memory_thread t ON t.resource_id = m.resource_id AND t.remembers AND t.deleted_at IS NULL
WHERE m.id = %s AND NOT EXISTS (
  SELECT 1 FROM memory_memoryrecord own
  WHERE own.thread_id = t.id AND own.scope = 'thread' AND own.closed_at IS NULL)
ORDER BY t.last_active_at DESC, t.id DESC
"""

#: What is raw of a thread between two positions, in one epoch of a record: it never changes.
_Stretch = tuple[int, int, UUID, int]
_raw: Recent[tuple[_Stretch, tuple[int, int]]] = recent(8192)


def tails_in(record: MemoryRecord) -> list[Tail]:
    """Return the conversations of a record at its revision, those with raw messages and others.

    The one that spoke last comes first.
    """
    key = converter(Thread._meta.get_field("id"))
    own = MemoryRecord._meta.pk.get_db_prep_value(record.pk, connection)
    with connection.cursor() as cursor:
        cursor.execute(_COVERED, [record.revision, own])
        rows = [(key(pk), *row) for pk, *row in cursor.fetchall()]
    wanted: dict[UUID, _Stretch] = {
        pk: (covered, last, record.pk, record.epoch) for pk, _, last, covered in rows
    }
    sizes = _sizes({pk: stretch for pk, stretch in wanted.items() if stretch[0] < stretch[1]})
    return [Tail(pk, title or UNTITLED, *sizes.get(pk, (0, 0))) for pk, title, *_ in rows]


def _sizes(wanted: dict[UUID, _Stretch]) -> dict[UUID, tuple[int, int]]:
    """Return how many messages lie in stretches of threads, and their tokens."""
    known = {pk: _raw.get(pk) for pk in wanted}
    missing = [pk for pk, found in known.items() if found is None or found[0] != wanted[pk]]
    for start in range(0, len(missing), AT_ONCE):
        some = missing[start : start + AT_ONCE]
        found = _counted({pk: wanted[pk] for pk in some})
        for pk in some:
            size = wanted[pk], found.get(pk, (0, 0))
            known[pk] = size
            _raw.put(pk, size)
    return {pk: found[1] for pk, found in known.items() if found is not None}


def _counted(wanted: dict[UUID, _Stretch]) -> dict[UUID, tuple[int, int]]:
    within = [
        Q(thread=pk, position__gt=after, position__lte=through)
        for pk, (after, through, *_) in wanted.items()
    ]
    rows = Message.objects.filter(Q(*within, _connector=Q.OR)).order_by().values_list("thread")
    return {pk: (n, tokens) for pk, n, tokens in rows.annotate(Count("pk"), Sum("tokens"))}


def told(state: State, tails: list[Tail]) -> tuple[str, int]:
    """Return what the next request says of other conversations, and its tokens.

    It is written as the request is, from messages that this process has mostly read already.
    Nothing is returned when the record moved on meanwhile: what moved it comes with an event.
    """
    view = view_of(state) if tails else None
    return ("", 0) if view is None else others_text(view)
