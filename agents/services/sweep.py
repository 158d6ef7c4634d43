"""Close what dead processes left open and start what waits."""

from __future__ import annotations

from ..models import Turn
from .send import turns
from .turn import close_lapsed


def sweep() -> int:
    """Close lapsed turns and wake the runner for waiting ones; return how many were closed."""
    closed = close_lapsed()
    waiting = Turn.objects.waiting().order_by().values_list("thread_id", flat=True).distinct()
    for thread_id in waiting:
        turns.dispatch(thread_id)
    return closed
