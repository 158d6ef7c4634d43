"""Take prompts in, and take waiting ones back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from memory.dispatch import Switch
from memory.messages import safe_text
from memory.models import Thread
from memory.models.swift import insert
from memory.publish import publish

from ..events import TurnQueued, TurnWithdrawn
from ..models import Turn

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LONGEST_PROMPT = 200_000
MOST_WAITING = 20
MOST_TRIES = 2 * MOST_WAITING

turns = Switch()


class BadPrompt(ValueError):
    """Say in one sentence why a prompt cannot be taken."""


def send(
    thread_id: UUID,
    text: str,
    *,
    key: UUID | None = None,
    author: User | None = None,
    attachments: Sequence[Mapping[str, Any]] = (),
) -> Turn:
    """Commit a prompt as a waiting turn and wake the runner; return the turn.

    ``attachments`` are what ``attach.redeem`` returns; with them the text may be empty. The
    same ``key`` gives the same turn, so that sending again after a lost answer is safe.
    Raises BadPrompt, Thread.DoesNotExist.
    """
    prompt = checked(text, alone=not attachments)
    key = key or uuid4()
    for _ in range(MOST_TRIES):
        number = _next_number(thread_id)
        try:
            with transaction.atomic():
                turn = Turn(
                    thread_id=thread_id,
                    number=number,
                    key=key,
                    author=author,
                    prompt=prompt,
                    attachments=list(attachments),
                )
                insert(turn)
                publish(TurnQueued(thread=thread_id, turn=turn.number))
                turns.dispatch(thread_id)
        except IntegrityError:
            # The key is known, or another prompt took the number first.
            known = Turn.objects.filter(key=key).first()
            if known is not None:
                return _same(known, thread_id)
        else:
            return turn
    raise BadPrompt("Too many messages arrive at once. Send this one again in a moment.")


def checked(text: str, *, alone: bool = True) -> str:
    """Return a prompt as it can be stored; not alone, it may be empty. Raises BadPrompt."""
    if alone and not text.strip():
        raise BadPrompt("The message is empty. Write something first.")
    if len(text) > LONGEST_PROMPT:
        raise BadPrompt(
            f"The message has {len(text):,} characters; at most {LONGEST_PROMPT:,} can be sent."
        )
    return safe_text(text)


def withdraw(thread_id: UUID, number: int) -> bool:
    """Take back a waiting prompt; return False when its turn has come already."""
    with transaction.atomic():
        taken = (
            Turn.objects.waiting()
            .filter(thread=thread_id, number=number)
            .update(status=Turn.Status.WITHDRAWN, finished_at=Now())
        )
        if taken:
            publish(TurnWithdrawn(thread=thread_id, turn=number))
    return bool(taken)


def retry(thread_id: UUID, number: int, *, author: User | None = None) -> Turn:
    """Send the prompt of a turn that brought no answer again, once. Raises BadPrompt."""
    failed = Turn.objects.filter(
        thread=thread_id, number=number, status__in=Turn.UNANSWERED
    ).first()
    if failed is None:
        raise BadPrompt("Only a message that was not answered can be sent again.")
    return send(
        thread_id,
        failed.prompt,
        key=uuid5(NAMESPACE_OID, f"retry {failed.key}"),
        author=author,
        attachments=failed.attachments,
    )


_COUNT = """
SELECT MAX(number), COUNT(CASE WHEN status = 'waiting' THEN 1 END)
FROM agents_turn WHERE thread_id = %s
"""


def _next_number(thread_id: UUID) -> int:
    with connection.cursor() as cursor:
        key = Turn._meta.get_field("thread").get_db_prep_value(thread_id, connection)
        cursor.execute(_COUNT, [key])
        last, waiting = cursor.fetchone()
    if last is None and not Thread.objects.filter(pk=thread_id).exists():
        raise Thread.DoesNotExist(f"There is no thread {thread_id}.")
    if waiting >= MOST_WAITING:
        raise BadPrompt(f"{MOST_WAITING} messages wait already. Withdraw one, or wait.")
    return (last or 0) + 1


def _same(turn: Turn, thread_id: UUID) -> Turn:
    if turn.thread_id != thread_id:
        raise BadPrompt("This message was sent to another conversation already.")
    return turn
