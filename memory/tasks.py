"""Run cycles in a Celery worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import UUID

from celery import shared_task
from kombu.exceptions import OperationalError

from memory.services.due import run_due

logger = logging.getLogger(__name__)


@shared_task(acks_late=True, reject_on_worker_lost=True, ignore_result=True)  # type: ignore[untyped-decorator]
def run_due_cycles(thread_id: str, **_: Any) -> None:
    """Run what is due for a thread. Delivered twice, or too late, it finds nothing to do."""
    _runner().run(run_due(UUID(thread_id)))


@lru_cache(maxsize=1)
def _runner() -> asyncio.Runner:
    """Return this process's event loop: model clients live on the loop that made them.

    A worker runs one task at a time per process (the prefork and solo pools).
    """
    return asyncio.Runner()


class CeleryDispatcher:
    """Wake a worker through the broker."""

    def __init__(self, queue: Callable[[str], object] = run_due_cycles.delay) -> None:
        self._queue = queue

    def wake(self, thread_id: UUID) -> None:
        """Queue the thread; a broker that is away costs time until the next sweep."""
        try:
            self._queue(str(thread_id))
        except OperationalError:
            logger.warning("The broker does not answer; thread %s waits for the sweep.", thread_id)
