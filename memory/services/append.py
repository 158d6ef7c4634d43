"""Store finished messages at the end of a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from pydantic_ai.messages import ModelMessage, ModelResponse

from memory.events import MessagesAppended
from memory.messages import dump, kind_of, plain_text
from memory.models import Message, Thread
from memory.publish import publish
from memory.tokens import count_message

Fence = Callable[[], None]


def no_fence() -> None:
    """Let everyone write; for threads that no turn guards."""


def append(
    thread_id: UUID,
    messages: Sequence[ModelMessage],
    *,
    at: datetime,
    fence: Fence = no_fence,
) -> list[Message]:
    """Store messages in one transaction and return their rows, in order.

    ``fence`` is called first, inside the transaction, and raises when the caller no longer
    may write. Raises Thread.DoesNotExist.
    """
    if not messages:
        return []
    # Counting is the slow part and needs no lock.
    rows = [_row(thread_id, message, at) for message in messages]
    with transaction.atomic():
        fence()
        first = Thread.objects.take_positions(thread_id, len(rows))
        for position, row in enumerate(rows, first):
            row.position = position
        Message.objects.bulk_create(rows)
        publish(MessagesAppended(thread=thread_id, first=first, last=first + len(rows) - 1))
    return rows


def _row(thread_id: UUID, message: ModelMessage, at: datetime) -> Message:
    return Message(
        thread_id=thread_id,
        kind=kind_of(message).value,
        payload=dump(message),
        text=plain_text(message),
        tokens=count_message(message),
        model=(message.model_name or "") if isinstance(message, ModelResponse) else "",
        created_at=at,
    )
