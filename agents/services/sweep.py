"""Close what dead processes left open, start what waits, and erase what was deleted."""

from __future__ import annotations

from ..models import Turn
from . import discard, sign_in
from .close import close_lapsed
from .send import turns


def sweep() -> int:
    """Close lapsed turns and wake the runner for waiting ones; return how many were closed.

    Conversations that were deleted a while ago are destroyed, failures to sign in forgotten.
    """
    closed = close_lapsed()
    waiting = Turn.objects.waiting().order_by().values_list("thread_id", flat=True).distinct()
    for thread_id in waiting:
        turns.dispatch(thread_id)
    discard.sweep()
    sign_in.sweep()
    return closed
