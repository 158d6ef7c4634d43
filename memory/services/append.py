"""Store finished messages at the end of a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_core import PydanticSerializationError

from memory.events import MessagesAppended
from memory.messages import attachments, dump, in_words, kind_of, plain_text
from memory.models import Message, Thread
from memory.models.swift import insert
from memory.publish import publish
from memory.tokens import count_message

from . import kept
from .kept import Raw

Fence = Callable[[], None]


def no_fence() -> None:
    """Let everyone write; for threads that no turn guards."""


def append(
    thread_id: UUID,
    messages: Sequence[ModelMessage],
    *,
    at: datetime,
    fence: Fence = no_fence,
    model: str = "",
) -> list[Raw]:
    """Store messages in one transaction and return them as stored, in order.

    ``model`` is the Actor's, by whose provider's rules pictures and files are counted.
    ``fence`` is called first, inside the transaction, and raises when the caller no longer
    may write. Raises Thread.DoesNotExist.
    """
    if not messages:
        return []
    # Counting is the slow part and needs no lock.
    rows = [_row(thread_id, message, at, model) for message in messages]
    with transaction.atomic():
        fence()
        return _store(thread_id, rows)


def append_within(
    thread_id: UUID, messages: Sequence[ModelMessage], *, at: datetime, model: str = ""
) -> list[Raw]:
    """Store messages in the transaction around, which must end when this raises; see append."""
    return _store(thread_id, [_row(thread_id, message, at, model) for message in messages])


def _store(thread_id: UUID, rows: list[Message]) -> list[Raw]:
    if not rows:
        return []
    first = Thread.objects.take_positions(thread_id, len(rows))
    for position, row in enumerate(rows, first):
        row.position = position
    _insert(rows)
    raws = [Raw(row) for row in rows]
    transaction.on_commit(lambda: kept.appended(thread_id, raws, first), robust=True)
    publish(MessagesAppended(thread=thread_id, first=first, last=first + len(rows) - 1))
    return raws


def _insert(rows: Sequence[Message]) -> None:
    if len(rows) == 1:
        insert(rows[0])
    else:
        Message.objects.bulk_create(rows)


def _row(thread_id: UUID, message: ModelMessage, at: datetime, model: str) -> Message:
    try:
        payload = dump(message)
    except (PydanticSerializationError, RecursionError):
        message = in_words(message)
        payload = dump(message)
    counted_for = _answered_by(message) or (model if attachments(message) else "")
    return Message(
        thread_id=thread_id,
        kind=kind_of(message).value,
        payload=payload,
        text=plain_text(message),
        tokens=count_message(message, counted_for),
        model=counted_for,
        created_at=at,
    )


def _answered_by(message: ModelMessage) -> str:
    return (message.model_name or "") if isinstance(message, ModelResponse) else ""
