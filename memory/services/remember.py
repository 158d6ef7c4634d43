"""Turn the memory of one conversation off and on again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from memory.dispatch import dispatch
from memory.models import MemoryRecord, Thread
from memory.models.state import read_state

from .anew import anew
from .change import give_up_cycles, held
from .configure import REMEMBERS, write

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WHY = "Memory was turned off for this conversation."


@anew
def remember(
    thread_id: UUID,
    on: bool,
    *,
    author: User | None = None,
    reason: str = "",
    fence: Callable[[], None] = lambda: None,
) -> None:
    """Let a conversation remember from now on, or no more; nothing that is remembered is lost.

    While it is off the agent is sent the whole conversation and nothing of it is observed.
    ``fence`` is called first inside the transaction and raises while a turn runs. Raises
    Refused, with nothing changed.
    """
    with transaction.atomic():
        fence()
        state = read_state(thread_id)
        if state.thread.remembers == on:
            return
        Thread.objects.filter(pk=thread_id).update(remembers=on)
        if state.record is not None:
            record = held(state.record.pk)
            _write(record, state.thread, on, author=author, reason=reason)
            if not on:
                give_up_cycles(record.pk, WHY, thread_id=thread_id)
        dispatch(thread_id)


def _write(
    record: MemoryRecord, thread: Thread, on: bool, *, author: User | None, reason: str
) -> None:
    switched = {REMEMBERS: {"before": not on, "after": on}}
    write(record, record.config, thread=thread, author=author, reason=reason, more=switched)
