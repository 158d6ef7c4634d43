"""Delete conversations so that it can be undone for a moment, and destroy them after it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory.models import Thread
from memory.services import shelve
from memory.services.change import Refused
from memory.services.erase import Erased

from ..models import Turn
from . import send, turn
from .erase import erase_thread

if TYPE_CHECKING:
    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)

#: How long a deletion can be undone on a page, and how long the sweep leaves it alone.
UNDO = timedelta(seconds=8)
GRACE = timedelta(seconds=30)


def discard(thread_id: UUID) -> None:
    """Hide a conversation and end what runs in it; the sweep erases it after a while."""
    with transaction.atomic():
        shelve.hide(thread_id)
        for number in (
            Turn.objects.waiting().filter(thread=thread_id).values_list("number", flat=True)
        ):
            send.withdraw(thread_id, number)
        turn.stop(thread_id)


def bring_back(thread_id: UUID) -> bool:
    """Show a discarded conversation again; return False when it is gone for good."""
    return shelve.show(thread_id)


def destroy(thread_id: UUID, *, author: User | None = None, reason: str = "") -> Erased:
    """Destroy a conversation now, but not its forks. Raises Refused while a turn runs."""
    return erase_thread(thread_id, copies=False, author=author, reason=reason)


def sweep() -> int:
    """Destroy what was discarded long enough ago; return how many conversations that were."""
    destroyed = 0
    old = Thread.objects.filter(deleted_at__lt=timezone.now() - GRACE)
    for thread_id in old.order_by("deleted_at").values_list("pk", flat=True):
        try:
            destroy(thread_id)
        except Refused:
            continue  # Its turn has not ended yet; the next sweep comes back to it.
        except Exception:
            # One that cannot be erased must not keep the others; the next sweep comes back to it.
            logger.exception("The deleted conversation %s could not be erased.", thread_id)
        else:
            destroyed += 1
    return destroyed
