"""Say how large a conversation is, how far memory covers it, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from agents.models import Turn
from memory.models import Cycle, Thread

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


def threads_of(resource_id: int) -> QuerySet[Thread]:
    """Select the newest threads of a resource, annotated with what is running in each."""
    cycles = Cycle.objects.running().filter(thread=OuterRef("pk"))
    return (
        Thread.objects.there()
        .filter(resource=resource_id, is_lab=False, archived_at__isnull=True)
        .annotate(
            answering=Exists(Turn.objects.running().filter(thread=OuterRef("pk"))),
            cycle_kind=Subquery(cycles.order_by("-started_at").values("kind")[:1]),
        )
        .order_by("-last_active_at", "-id")[:LATEST_THREADS]
    )
