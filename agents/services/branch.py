"""Answer a prompt once more, or another in its place, in a conversation of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from memory.models import Thread
from memory.services.change import Refused

from ..models import Turn
from .fork import fork
from .send import admit, checked, send

if TYPE_CHECKING:
    from django.contrib.auth.models import User

#: How many forks of a fork are followed to find where the branches began.
MOST_LEVELS = 1000


def branch(
    thread_id: UUID, number: int, *, text: str | None = None, author: User | None = None
) -> Thread:
    """Return a fork from before a turn in which its prompt, or ``text``, is sent.

    Files stay with the prompt. What was said after it stays in the thread it was said in.
    Raises Refused for a turn that has not begun, BadPrompt for a text that cannot be sent.
    """
    turn = Turn.objects.filter(thread=thread_id, number=number).first()
    if turn is None or turn.first_position is None:
        raise Refused("Only a message whose turn has begun can be sent anew.")
    position = turn.first_position - 1
    prompt = checked(turn.prompt if text is None else text, alone=not turn.attachments)
    # Asked before the conversation is copied, which is what takes long.
    admit(thread_id, prompt, author)
    with transaction.atomic():
        child = fork(root_of(thread_id, position), position, author=author)
        send(child.pk, prompt, author=author, attachments=_files(turn))
    return child


def root_of(thread_id: UUID, position: int) -> UUID:
    """Return the thread whose fork a branch at a position is to be, so that branches lie flat."""
    for _ in range(MOST_LEVELS):
        found = Thread.objects.there().filter(forks=thread_id, forks__fork_position=position)
        parent = found.values_list("pk", flat=True).first()
        if parent is None:
            break
        thread_id = parent
    return thread_id


def _files(turn: Turn) -> list[dict[str, Any]]:
    return list(turn.attachments)
