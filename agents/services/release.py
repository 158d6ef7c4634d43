"""Take a turn from a runner that no longer runs it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from memory.models.swift import FromNow, swap
from memory.services.change import Refused

from ..models import Turn
from .close import close_lapsed


def release(turn_id: UUID) -> None:
    """Close a running turn as interrupted, with what it had said; its runner writes no more.

    Raises Refused when it does not run.
    """
    turn = Turn.objects.running().filter(pk=turn_id).first()
    mine = {"pk": turn_id, "status": Turn.Status.RUNNING}
    past = {"lease_expires_at": FromNow(timedelta(hours=-1))}
    if turn is None or swap(Turn, mine, past) is None or not close_lapsed(turn.thread_id):
        raise Refused("This turn does not run any more: there is no lease to release.")
