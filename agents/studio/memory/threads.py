"""List the memories of a resource whose conversations remember each for itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from agents import words
from agents.looks import news_of_memories
from memory.models import MemoryRecord, Revision, Thread

MOST = 100


@dataclass(frozen=True)
class ThreadRow:
    """Show one conversation and the size of its memory."""

    href: str
    title: str
    words: str
    active_at: str
    active_words: str
    news: str = ""


def rows_of(threads: QuerySet[Thread], now: datetime, reader: Any) -> list[ThreadRow]:
    """Return the rows, the last active first, in three statements."""
    records = MemoryRecord.objects.filter(
        thread=OuterRef("pk"), closed_at__isnull=True, scope=MemoryRecord.Scope.THREAD
    )
    newest = Revision.objects.filter(record__thread=OuterRef("pk"), record__closed_at__isnull=True)
    rows = threads.annotate(
        record=Subquery(records.values("pk")[:1]),
        revision=Subquery(records.values("revision")[:1]),
        size=Subquery(newest.order_by("-number").values("tokens_after")[:1]),
        said=F("last_position"),
    )
    found: list[Any] = list(rows[:MOST])
    news = news_of_memories(reader, [row.record for row in found if row.record])
    return [_row(row, now, news.get(row.record, 0)) for row in found]


def _row(thread: Any, now: datetime, news: int | None) -> ThreadRow:
    revision, size = thread.revision, thread.size
    told = (
        f"revision {revision} · {words.tokens(size or 0)} tokens" if revision else "no memory yet"
    )
    return ThreadRow(
        href=f"/memory/{thread.pk}/",
        title=str(thread),
        words=told,
        active_at=thread.last_active_at.isoformat(timespec="seconds"),
        active_words=words.ago(now, thread.last_active_at),
        news="not looked at yet" if news is None and revision else f"{news} new" if news else "",
    )
