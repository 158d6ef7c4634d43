"""Close turns: those that ended, and those whose process died."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from memory import telemetry
from memory.dispatch import dispatch
from memory.messages import interrupted_returns, load, open_calls
from memory.models import Message
from memory.publish import publish
from memory.services.append import append_within
from memory.services.kept import Raw

from ..events import TurnClosed
from ..models import Turn

logger = logging.getLogger(__name__)

DIED = "The server stopped while this was being answered."


@dataclass(frozen=True)
class Used:
    """Hold which model answered a turn, what it read and wrote, and what that cost in dollars."""

    usage: dict[str, int] = field(default_factory=dict)
    model: str = ""
    cost: Decimal | None = None


NOTHING = Used()


def close_turn(
    turn: Turn,
    status: Turn.Status,
    *,
    messages: Sequence[ModelMessage] = (),
    after: int | None = None,
    error: str = "",
    used: Used = NOTHING,
) -> list[Raw]:
    """Close a turn with its last messages, in one transaction; return these as stored.

    No tool call is left without its result. ``after`` is the position of the newest message
    the turn stored, where the caller knows it. Raises TurnLost, with nothing written.
    """
    # Within another transaction this is part of it: a savepoint would be two statements more.
    with transaction.atomic(savepoint=False):
        if status == Turn.Status.DONE and after is not None:
            turn.close(status, last_position=after + len(messages), **asdict(used))
            stored = append_within(turn.thread_id, messages, at=timezone.now())
            _correct(turn, stored, after + len(messages))
        else:
            turn.renew()
            tail = [*_returns_of_open_calls(turn), *messages]
            stored = append_within(turn.thread_id, tail, at=timezone.now())
            last = Message.objects.filter(thread=turn.thread_id).order_by("-position")
            position = last.values_list("position", flat=True).first()
            turn.close(status, error=error, last_position=position, **asdict(used))
        publish(TurnClosed(thread=turn.thread_id, turn=turn.number, status=status.value))
        telemetry.closed("turn", turn.pk, status.value)
    return stored


def _correct(turn: Turn, stored: Sequence[Raw], expected: int) -> None:
    """Set the last position right where somebody else appended to the thread meanwhile."""
    if stored and stored[-1].position != expected:
        Turn.objects.filter(pk=turn.pk).update(last_position=stored[-1].position)


def _returns_of_open_calls(turn: Turn) -> Sequence[ModelMessage]:
    since = (turn.first_position or 1) - 1
    stored = [load(m.payload) for m in Message.objects.above(turn.thread_id, since)]
    calls = open_calls(stored)
    return [interrupted_returns(calls)] if calls else []


def close_lapsed(thread_id: UUID | None = None) -> int:
    """Close turns whose process died as interrupted, with what they had said; return how many.

    One that cannot be closed is left to the next time, and keeps no other.
    """
    lapsed = Turn.objects.lapsed()
    if thread_id is not None:
        lapsed = lapsed.filter(thread=thread_id)
    return sum(_closed(turn) for turn in lapsed)


def _closed(turn: Turn) -> int:
    try:
        return _take_over(turn)
    except Exception:
        logger.exception("The lapsed turn %s could not be closed.", turn.pk)
        return 0


def _take_over(turn: Turn) -> int:
    token = uuid4()
    with transaction.atomic():
        taken = Turn.objects.lapsed().filter(pk=turn.pk, lease_token=turn.lease_token)
        if not taken.update(lease_token=token):
            return 0
        turn.lease_token = token
        turn.refresh_from_db(fields=["draft_text"])
        said = turn.draft_text.strip()
        partial = [ModelResponse(parts=[TextPart(turn.draft_text)])] if said else []
        close_turn(turn, Turn.Status.INTERRUPTED, error=DIED, messages=partial)
        dispatch(turn.thread_id)
    return 1
