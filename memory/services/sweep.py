"""Take over what dead processes left, and decide anew for recently active threads.

A decision that was never claimed has no row, so a lost wake-up is found only by looking.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models.functions import Now

from memory.dispatch import dispatch
from memory.models import Cycle, Thread

from .cycles import retire_lapsed

RECENT = timedelta(days=1)
MOST_THREADS = 200


def sweep() -> int:
    """End lapsed cycles and wake the runner for recent threads; return how many cycles ended."""
    ended = retire_lapsed(Cycle.objects.all())
    for thread_id in _worth_a_look():
        dispatch(thread_id)
    return ended


def _worth_a_look() -> list[UUID]:
    recent = Thread.objects.filter(remembers=True, last_active_at__gt=Now() - RECENT)
    resting = Thread.objects.filter(
        cycles__status=Cycle.Status.FAILED, cycles__next_attempt_at__gt=Now() - RECENT
    )
    ids = recent.order_by("-last_active_at").values_list("pk", flat=True)[:MOST_THREADS]
    return list(dict.fromkeys([*ids, *resting.values_list("pk", flat=True)[:MOST_THREADS]]))
