"""Write a line of one's own into memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.utils import timezone

from memory.models import Line, Observation, Revision
from memory.tokens import count_line

from .anew import anew
from .change import change, checked_kind, checked_text

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@anew
def note(
    record_id: UUID,
    text: str,
    *,
    kind: str = Line.Kind.HIGH,
    said_at: datetime | None = None,
    thread_id: UUID | None = None,
    author: User | None = None,
    reason: str = "",
) -> Line:
    """Show a line that a person wrote, after all that is shown; return it.

    It covers no message and no reflection condenses it. ``thread_id`` names the conversation
    it belongs to, if one of several. Raises Refused when the text is empty or too long.
    """
    said, kind = checked_text(text), checked_kind(kind)
    at = said_at or timezone.now()
    tokens = count_line(kind, said, at)
    with change(
        record_id, Revision.Cause.NOTE, author=author, reason=reason, thread_id=thread_id
    ) as now:
        row = Observation.objects.create(
            record=now.record,
            thread_id=thread_id,
            kind=Observation.Kind.NOTE,
            tokens=tokens,
            place=now.number,
            since=now.number,
        )
        return Line.objects.create(
            observation=row,
            ordinal=0,
            kind=kind,
            said_at=at,
            text=said,
            tokens=tokens,
            since=now.number,
        )
