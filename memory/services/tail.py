"""Send the newest messages as they are, when memory itself fails: the turn goes on without it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memory.engine.values import MessageKind
from memory.engine.window import left_out
from memory.models import Message
from memory.models.thread import MessageQuerySet

from .kept import Raw
from .request import Prepared, message_block

MOST_MESSAGES = 400
ROOM = 60_000
"""How many tokens of earlier messages and the running turn are sent at most."""


def tail(thread_id: UUID, *, prompt_position: int, why: str, room: int = ROOM) -> Prepared:
    """Return a request of the newest messages alone, calls and results together.

    Nothing but the messages is read. The running turn is sent from its prompt on. ``why`` says
    what failed, in the source of every block.
    """
    earlier = _newest(Message.objects.filter(thread=thread_id, position__lt=prompt_position))
    current = list(map(Raw, Message.objects.above(thread_id, prompt_position - 1)))
    dropped, within = left_out(
        [r.pending for r in earlier], [r.pending for r in current], room=room
    )
    sent = [*earlier[dropped:], *current[:1], *current[within + 1 :]]
    source = f"conversation, without memory: {why}"
    kinds = ("prompt" if raw.position >= prompt_position else "message" for raw in sent)
    return Prepared(
        tuple(message_block(k, raw, source=source) for k, raw in zip(kinds, sent, strict=True))
    )


def _newest(messages: MessageQuerySet) -> Sequence[Raw]:
    """Return the newest messages, beginning with a prompt: never with a result of no call."""
    rows = messages.order_by("-position")[:MOST_MESSAGES]
    found = [Raw(row) for row in reversed(rows)]
    for index, raw in enumerate(found):
        if raw.pending.kind is MessageKind.REQUEST and not raw.pending.returns:
            return found[index:]
    return []
