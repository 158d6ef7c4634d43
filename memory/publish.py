"""Send events to the pages that show their thread or record, after commit.

A publish can be lost, since a process may die between commit and send; pages therefore
compare what they show with the rows now and then, and nothing depends on an event.
"""

from __future__ import annotations

import logging
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from .events import Event

logger = logging.getLogger(__name__)


def thread_group(thread_id: UUID) -> str:
    """Name the group that watches a thread."""
    return f"thread.{thread_id.hex}"


def record_group(record_id: UUID) -> str:
    """Name the group that watches a record."""
    return f"record.{record_id.hex}"


def publish(event: Event) -> None:
    """Send an event once the surrounding transaction is committed."""
    transaction.on_commit(lambda: async_to_sync(send)(event))


async def send(event: Event) -> None:
    """Send an event now."""
    layer = get_channel_layer()
    if layer is None:
        return
    frame = {"type": "memory.event", "event": event.model_dump(mode="json")}
    try:
        await layer.group_send(thread_group(event.thread), frame)
        if event.record is not None:
            await layer.group_send(record_group(event.record), frame)
    except Exception:
        # A lost event costs a page two seconds; it must never undo a commit.
        logger.warning("The event %s was not delivered.", event.kind, exc_info=True)
