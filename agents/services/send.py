"""Take prompts in, and take waiting ones back."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now

from memory.dispatch import Switch
from memory.messages import safe_text
from memory.models import Thread
from memory.publish import publish

from ..events import TurnQueued, TurnWithdrawn
from ..models import Turn

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LONGEST_PROMPT = 200_000
MOST_WAITING = 20

turns = Switch()


class BadPrompt(ValueError):
    """Say in one sentence why a prompt cannot be taken."""


def send(
    thread_id: UUID, text: str, *, key: UUID | None = None, author: User | None = None
) -> Turn:
    """Commit a prompt as a waiting turn and wake the runner; return the turn.

    The same ``key`` gives the same turn, so that sending again after a lost answer is safe.
    Raises BadPrompt, Thread.DoesNotExist.
    """
    prompt = checked(text)
    key = key or uuid4()
    known = Turn.objects.filter(key=key).first()
    if known is not None:
        return _same(known, thread_id)
    with transaction.atomic():
        # The row lock gives numbers in order, one at a time, on both databases.
        if not Thread.objects.filter(pk=thread_id).update(last_active_at=Now()):
            raise Thread.DoesNotExist(f"There is no thread {thread_id}.")
        if Turn.objects.waiting().filter(thread=thread_id).count() >= MOST_WAITING:
            raise BadPrompt(f"{MOST_WAITING} messages wait already. Withdraw one, or wait.")
        try:
            with transaction.atomic():
                turn = Turn.objects.create(
                    thread_id=thread_id,
                    number=_next_number(thread_id),
                    key=key,
                    author=author,
                    prompt=prompt,
                )
        except IntegrityError:
            return _same(Turn.objects.get(key=key), thread_id)
        publish(TurnQueued(thread=thread_id, turn=turn.number))
        turns.dispatch(thread_id)
    return turn


def checked(text: str) -> str:
    """Return a prompt as it can be stored. Raises BadPrompt."""
    if not text.strip():
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
        thread_id, failed.prompt, key=uuid5(NAMESPACE_OID, f"retry {failed.key}"), author=author
    )


def _next_number(thread_id: UUID) -> int:
    last = Turn.objects.filter(thread=thread_id).aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def _same(turn: Turn, thread_id: UUID) -> Turn:
    if turn.thread_id != thread_id:
        raise BadPrompt("This message was sent to another conversation already.")
    return turn
