"""Fork conversations with their turns, so that the new page shows what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from memory.models import Thread
from memory.services import fork as memory
from memory.services.anew import anew

from ..models import Turn

if TYPE_CHECKING:
    from django.contrib.auth.models import User

UNSTARTED = (Turn.Status.WAITING, Turn.Status.WITHDRAWN)


@anew
@transaction.atomic
def fork(
    thread_id: UUID,
    position: int,
    *,
    title: str = "",
    author: User | None = None,
    reason: str = "",
) -> Thread:
    """Return a new thread with the messages, the turns and the memory up to a position.

    A turn that the position cuts counts as stopped there. What the turns used stays with the
    original. Raises memory.services.change.Refused where no step ends.
    """
    child = memory.fork(thread_id, position, title=title, author=author, reason=reason)
    begun = Turn.objects.filter(thread=thread_id, first_position__lte=position)
    turns = begun.exclude(status__in=UNSTARTED).order_by("number")
    Turn.objects.bulk_create([_copy(turn, child, position) for turn in turns])
    return child


def _copy(turn: Turn, child: Thread, position: int) -> Turn:
    copied = {
        field.attname: getattr(turn, field.attname)
        for field in Turn._meta.concrete_fields
        if field.attname not in ("id", "key", "lease_token", "lease_expires_at", "usage", "cost")
    }
    copy = Turn(**{**copied, "thread_id": child.pk, "key": uuid4(), "draft_text": ""})
    copy.stop_requested = False
    if turn.last_position is None or turn.last_position > position:
        copy.status, copy.error = Turn.Status.STOPPED, ""
        copy.last_position = position
        copy.finished_at = turn.finished_at or timezone.now()
    return copy
