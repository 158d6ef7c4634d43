"""Take prompts in, and take waiting ones back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from memory.dispatch import Switch
from memory.messages import safe_text
from memory.models import Thread
from memory.models.swift import insert
from memory.publish import publish

from ..events import TurnQueued, TurnWithdrawn
from ..models import Turn
from .allow import Standing, allow, stand
from .refusal import BadPrompt as BadPrompt
from .refusal import LimitReached as LimitReached

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MOST_WAITING = 20
MOST_TRIES = 2 * MOST_WAITING

turns = Switch()


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
    Raises BadPrompt, of which LimitReached is one, and Thread.DoesNotExist.
    """
    prompt = checked(text, alone=not attachments)
    key = key or uuid4()
    for _ in range(MOST_TRIES):
        try:
            number = _admitted(thread_id, prompt, author)
        except BadPrompt:
            # What was taken already is not refused when it is sent again.
            known = Turn.objects.filter(key=key).first()
            if known is None:
                raise
            return _same(known, thread_id)
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


def admit(thread_id: UUID, text: str, author: User | None) -> None:
    """Let a prompt pass that is sent a little later. Raises LimitReached."""
    allow(thread_id, text, author=author, standing=stand(thread_id, author))


def _admitted(thread_id: UUID, prompt: str, author: User | None) -> int:
    """Return the number for a prompt that may be sent. Raises BadPrompt, Thread.DoesNotExist."""
    standing = stand(thread_id, author)
    if standing.last is None and not Thread.objects.filter(pk=thread_id).exists():
        raise Thread.DoesNotExist(f"There is no thread {thread_id}.")
    _check_waiting(standing)
    allow(thread_id, prompt, author=author, standing=standing)
    return (standing.last or 0) + 1


def _check_waiting(standing: Standing) -> None:
    if standing.waiting >= MOST_WAITING:
        raise BadPrompt(f"{MOST_WAITING} messages wait already. Withdraw one, or wait.")


def _same(turn: Turn, thread_id: UUID) -> Turn:
    if turn.thread_id != thread_id:
        raise BadPrompt("This message was sent to another conversation already.")
    return turn
