"""Read what the other conversations of a shared memory hold, without a query for each."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, F, Max, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from memory.models import MemoryRecord, Message, Observation, Thread
from memory.models.state import State
from memory.services.look import view_of
from memory.services.request import others_text


@dataclass(frozen=True)
class Tail:
    """Hold how many messages of another conversation memory has not observed, and their tokens."""

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


def tails_beside(record: MemoryRecord, thread_id: UUID) -> list[Tail]:
    """Return the other conversations with raw messages at the record's revision, newest first."""
    covered = Observation.objects.covering(record.pk, record.revision).filter(thread=OuterRef("pk"))
    through = covered.order_by().values("thread").annotate(last=Max("last_position"))
    above = Message.objects.filter(thread=OuterRef("pk"), position__gt=OuterRef("observed"))
    raw = above.order_by().values("thread")
    found = (
        threads_in(record)
        .exclude(pk=thread_id)
        .annotate(observed=Coalesce(Subquery(through.values("last")), 0))
        .filter(last_position__gt=F("observed"))
        .annotate(
            raw_messages=Subquery(raw.annotate(of=Count("pk")).values("of")),
            raw_tokens=Subquery(raw.annotate(of=Sum("tokens")).values("of")),
        )
        .order_by("-last_active_at", "-pk")
    )
    return [Tail(t.pk, str(t), t.raw_messages, t.raw_tokens) for t in found if t.raw_messages]


def told(state: State, tails: list[Tail]) -> tuple[str, int]:
    """Return what the next request says of other conversations, and its tokens.

    It is written as the request is, from messages that this process has mostly read already.
    Nothing is returned when the record moved on meanwhile: what moved it comes with an event.
    """
    view = view_of(state) if tails else None
    return ("", 0) if view is None else others_text(view)
