"""Go back to the options a record had: after any of its revisions, or before its first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from memory.models import MemoryRecord, Revision

from .anew import anew
from .change import Refused
from .configure import REMEMBERS, configure, undone

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def options_at(record: MemoryRecord, number: int) -> dict[str, Any]:
    """Return a record's own options as they were at a revision. Raises Refused."""
    if not 0 <= number <= record.revision:
        raise Refused(f"There is no revision {number} of this memory.")
    found = dict(record.config)
    later = Revision.objects.filter(
        record=record, number__gt=number, cause=Revision.Cause.CONFIG
    ).order_by("-number")
    for revision in later:
        found = undone(found, revision.options)
    found.pop(REMEMBERS, None)
    return found


@anew
def go_back(
    thread_id: UUID, record: MemoryRecord, number: int, *, author: User | None = None
) -> int:
    """Set a record's own options to what they were at a revision; return the one it has then.

    ``thread_id`` is a thread whose memory is in it. Raises Refused.
    """
    was = options_at(record, number)
    changes = {name: was.get(name) for name in {*record.config, *was}}
    return configure(thread_id, changes, author=author, reason=f"As at revision {number}")
