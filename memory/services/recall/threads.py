"""List the threads that can be recalled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from memory.engine.recall import Asked, Period, Refused, period
from memory.engine.recalled import Listed, write_threads
from memory.models import Message, Thread
from memory.tokens import TOKENIZER

from .reach import Reach

NONE = "(There is no such conversation.)"


def threads(reach: Reach, asked: Asked) -> str:
    """Return a page of the threads within reach, the last active first, as text.

    ``after`` and ``before`` keep those with messages in that time. Raises Refused.
    """
    if asked.page < 0 or asked.cursor is not None:
        raise Refused('mode="threads" counts pages from 1 and takes no cursor.')
    span = period(asked, reach.zone)
    skip = (max(asked.page, 1) - 1) * asked.limit
    found = list(_within(reach, span)[skip : skip + asked.limit + 1])
    shown = found[: asked.limit]
    if not shown:
        return NONE
    counts = _counts([thread.pk for thread in shown])
    listed = [_listed(thread, reach, counts.get(thread.pk, 0)) for thread in shown]
    more = f" There are more: page={max(asked.page, 1) + 1}." if len(found) > len(shown) else ""
    return write_threads(listed, f"Conversations, the last active first.{more}", TOKENIZER)


def _within(reach: Reach, span: Period) -> QuerySet[Any]:
    # A thread's own times are those of its rows, which is not when imported messages were said.
    said = Message.objects.filter(thread=OuterRef("pk")).values("created_at")
    found = Thread.objects.filter(reach.threads()).annotate(
        first_at=Coalesce(Subquery(said.order_by("position")[:1]), "created_at"),
        last_at=Coalesce(Subquery(said.order_by("-position")[:1]), "last_active_at"),
    )
    if span.start:
        found = found.filter(last_at__gte=span.start)
    if span.end:
        found = found.filter(first_at__lt=span.end)
    return found.order_by("-last_active_at", "-pk")


def _counts(ids: Sequence[UUID]) -> dict[UUID, int]:
    counted = Message.objects.filter(thread__in=ids).order_by().values_list("thread")
    return dict(counted.annotate(Count("pk")))


def _listed(thread: Any, reach: Reach, messages: int) -> Listed:
    first_at: datetime = thread.first_at
    last_at: datetime = thread.last_at
    return Listed(
        id=str(thread.pk),
        title=thread.title,
        first_at=first_at.astimezone(reach.zone),
        last_at=last_at.astimezone(reach.zone),
        messages=messages,
        is_current=thread.pk == reach.id,
    )
