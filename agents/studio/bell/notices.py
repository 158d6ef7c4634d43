"""Read what happened lately that matters: what failed, what was condensed, what others changed.

It is looked for among the newest conversations of a person's own resources, so that it costs the
same however much there is, and tells nobody of staff about memory that is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q

from agents import words
from agents.access import threads_for
from agents.models import Turn
from agents.page import REFLECTS
from agents.people import DID
from agents.studio.memory.reflections import home_of
from memory.models import Cycle, MemoryRecord, Revision

MOST = 50
LOOKED_AT = 60
SINCE = timedelta(days=14)
_TURNS = {
    Turn.Status.FAILED: ("failed", "✕ Answer failed"),
    Turn.Status.INTERRUPTED: ("interrupted", "⚠ Answer interrupted"),
}


@dataclass(frozen=True)
class Notice:
    """Show one thing that happened."""

    key: str
    at: datetime
    state: str
    words: str
    title: str
    href: str
    detail: str = ""
    new: bool = False


class Notices:
    """Read a person's notices; new are those since they looked, or else since they signed in."""

    def __init__(self, user: Any, now: datetime, looked_at: datetime | None) -> None:
        self.user = user
        self.now = now
        self.looked_at = looked_at or user.last_login or now - SINCE

    @cached_property
    def items(self) -> list[Notice]:
        """Return what happened, the newest first."""
        found = [*self._turns(), *self._cycles(), *self._revisions()]
        return sorted(found, key=lambda each: each.at, reverse=True)[:MOST]

    @property
    def new(self) -> int:
        """Return how many are new."""
        return sum(each.new for each in self.items)

    @cached_property
    def threads(self) -> list[UUID]:
        """Return the newest conversations of the person's own resources."""
        mine = threads_for(self.user).filter(resource__members=self.user)
        return list(mine.order_by("-last_active_at").values_list("pk", flat=True)[:LOOKED_AT])

    @property
    def _from(self) -> datetime:
        return self.now - SINCE

    def _notice(self, at: datetime, **shown: Any) -> Notice:
        return Notice(at=at, new=at > self.looked_at, **shown)

    def _turns(self) -> Iterator[Notice]:
        turns = Turn.objects.filter(
            thread__in=self.threads, status__in=_TURNS, finished_at__gte=self._from
        )
        turns = turns.select_related("thread").defer("draft_text", "prompt")
        for turn in turns.order_by("-finished_at")[:MOST]:
            state, said = _TURNS[Turn.Status(turn.status)]
            yield self._notice(
                turn.finished_at or turn.created_at,
                key=f"turn-{turn.pk}",
                state=state,
                words=said,
                title=str(turn.thread),
                href=f"/chat/{turn.thread_id}/",
                detail=turn.error,
            )

    def _cycles(self) -> Iterator[Notice]:
        cycles = Cycle.objects.filter(
            thread__in=self.threads, status=Cycle.Status.FAILED, finished_at__gte=self._from
        )
        for cycle in cycles.select_related("thread").order_by("-finished_at")[:MOST]:
            noun = "Reflection" if cycle.kind in REFLECTS else "Observation"
            yield self._notice(
                cycle.finished_at or cycle.started_at,
                key=f"cycle-{cycle.pk}",
                state="interrupted" if cycle.interrupted else "failed",
                words=f"✕ {noun} {'was interrupted' if cycle.interrupted else 'failed'}",
                title=str(cycle.thread),
                href=f"/context/calls/{cycle.pk}/",
                detail=cycle.error,
            )

    def _revisions(self) -> Iterator[Notice]:
        by_others = Q(cause__in=list(DID), author__isnull=False) & ~Q(author=self.user)
        records = MemoryRecord.objects.filter(
            Q(thread__in=self.threads) | Q(thread__isnull=True, resource__members=self.user)
        )
        revisions = Revision.objects.filter(
            by_others | Q(cause=Revision.Cause.REFLECT),
            record__in=records.values("pk"),
            created_at__gte=self._from,
        )
        revisions = revisions.select_related("author", "record__thread", "record__resource")
        for revision in revisions.order_by("-created_at")[:MOST]:
            yield self._revision(revision)

    def _revision(self, revision: Revision) -> Notice:
        cause, record = Revision.Cause(revision.cause), revision.record
        sizes = (words.tokens(revision.tokens_before), words.tokens(revision.tokens_after))
        if cause == Revision.Cause.REFLECT:
            said, detail = "✓ Memory condensed", f"{' → '.join(sizes)} tokens"
        else:
            said, detail = f"{DID[cause]} by {revision.author}", revision.reason
        return self._notice(
            revision.created_at,
            key=f"revision-{revision.pk}",
            state="reflected" if cause == Revision.Cause.REFLECT else "changed",
            words=said,
            title=str(record.thread or record.resource.name),
            href=f"{home_of(record)}?rev={revision.number}",
            detail=detail,
        )
