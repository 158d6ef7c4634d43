"""Carry out what a person asks for on the chat page, whichever way the request came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from agents.access import threads_for
from agents.allowed import rights_of
from agents.models import Turn
from agents.services import attach
from agents.services import send as prompts
from agents.services import turn as running

Refused = prompts.BadPrompt
LimitReached = prompts.LimitReached


def rights_on(user: Any, thread_id: UUID) -> frozenset[str] | None:
    """Return the names of a user's rights on a thread; None where they may not see it."""
    resource = _resource_of(user, thread_id)
    return None if resource is None else rights_of(user, resource)


def _resource_of(user: Any, thread_id: UUID) -> int | None:
    seen = threads_for(user, lab=True).filter(pk=thread_id)
    return seen.values_list("resource", flat=True).first()


def say(
    thread_id: UUID, text: str, *, key: UUID | None, author: Any, files: Sequence[str] = ()
) -> Turn:
    """Queue a prompt with files, given by token. Raises Refused with a sentence for people."""
    known = attach.redeem(thread_id, files)
    return prompts.send(thread_id, text, key=key, author=author, attachments=known)


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
