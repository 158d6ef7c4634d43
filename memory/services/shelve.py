"""Name conversations, put them away, and hide those that are about to be erased."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory.events import ThreadRenamed
from memory.messages import safe_text
from memory.models import Thread
from memory.publish import publish

from .change import Refused

LONGEST_TITLE = 200


def rename(thread_id: UUID, title: str) -> Thread:
    """Give a thread a title that no Observer changes; an empty one lets them again.

    Raises Refused for a title that is too long or a thread that is gone.
    """
    title = safe_text(" ".join(title.split()))
    if len(title) > LONGEST_TITLE:
        raise Refused(f"The title has {len(title)} characters; at most {LONGEST_TITLE} fit.")
    with transaction.atomic():
        found = Thread.objects.there().filter(pk=thread_id)
        changed = {"title": title} if title else {}
        if not found.update(title_pinned=bool(title), **changed):
            raise Refused("This conversation is gone.")
        thread = found.get()
        publish(ThreadRenamed(thread=thread_id, title=thread.title))
    return thread


def archive(thread_id: UUID) -> None:
    """Leave a thread out of lists that do not ask for archived ones; it goes on working."""
    _put(thread_id, archived_at=timezone.now())


def unarchive(thread_id: UUID) -> None:
    """Show a thread in lists again."""
    _put(thread_id, archived_at=None)


def hide(thread_id: UUID) -> None:
    """Leave a thread out everywhere, until it is shown again or erased."""
    _put(thread_id, deleted_at=timezone.now())


def show(thread_id: UUID) -> bool:
    """Show a hidden thread again; return False when it is erased already."""
    return _put(thread_id, deleted_at=None)


def _put(thread_id: UUID, **changes: object) -> bool:
    with transaction.atomic():
        thread = Thread.objects.filter(pk=thread_id)
        if not thread.update(**changes):
            return False
        publish(ThreadRenamed(thread=thread_id, title=thread.get().title))
    return True
