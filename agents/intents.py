"""Carry out what a person asks for on the chat page, whichever way the request came."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agents.models import Turn
from agents.services import send as prompts
from agents.services import turn as running
from memory.models import Thread

Refused = prompts.BadPrompt


def may_see(user: Any, thread_id: UUID) -> bool:
    """Tell whether a user is a member of the thread's resource."""
    return Thread.objects.of(user).filter(pk=thread_id).exists()


def say(thread_id: UUID, text: str, *, key: UUID | None, author: Any) -> Turn:
    """Queue a prompt. Raises Refused with a sentence for people."""
    return prompts.send(thread_id, text, key=key, author=author)


def stop(thread_id: UUID) -> None:
    """Stop the running turn, if any."""
    running.stop(thread_id)


def withdraw(thread_id: UUID, number: int) -> None:
    """Take back a waiting prompt. Raises Refused when its turn has come."""
    if not prompts.withdraw(thread_id, number):
        raise Refused("This message is being answered already. You can stop the answer.")


def retry(thread_id: UUID, number: int, *, author: Any) -> Turn:
    """Queue the prompt of a turn that went wrong again, once. Raises Refused."""
    return prompts.retry(thread_id, number, author=author)
