"""Run cycles in Celery workers.

A worker's threads wait for models; all of a process share one event loop, on which its model
clients and their connections live. Observers and Reflectors have queues of their own, so that a
long reflection holds up no observation. A message in a queue is only the news that something
may be due: cycles are rows, and a queue that lost everything costs time until the next sweep.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache, partial
from threading import Thread
from typing import Any, TypeVar
from uuid import UUID

from celery import shared_task
from kombu.exceptions import OperationalError

from memory.dispatch import OPERATIONS, asked, cycles
from memory.publish import LoopPublisher, Rest, publish_with
from memory.services import sweep as cycles_sweep
from memory.services.asked import carry_out
from memory.services.due import Work, run_due

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")


@shared_task(acks_late=True, reject_on_worker_lost=True, ignore_result=True)  # type: ignore[untyped-decorator]
def run_observers(thread_id: str, **_: Any) -> None:
    """Run the Observers due for a thread. Delivered twice, or too late, it finds nothing to do."""
    if wait_for(run_due(UUID(thread_id), work=Work.OBSERVER)):
        wake(run_reflectors.delay, thread_id)


@shared_task(acks_late=True, reject_on_worker_lost=True, ignore_result=True)  # type: ignore[untyped-decorator]
def run_reflectors(thread_id: str, **_: Any) -> None:
    """Run the Reflectors due for a thread. Delivered twice, or too late, it finds nothing to do."""
    wait_for(run_due(UUID(thread_id), work=Work.REFLECTOR))


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def run_asked(thread_id: str, operation: str, **_: Any) -> None:
    """Carry out what a person asked for; not again when the worker dies, since they may have."""
    wait_for(carry_out(operation, UUID(thread_id)))


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sweep(**_: Any) -> None:
    """Take over what dead processes left, and start what is due and was not told."""
    cycles_sweep.sweep()


@lru_cache(maxsize=1)
def loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop, which runs in a thread of its own."""
    made = asyncio.new_event_loop()
    Thread(target=made.run_forever, name="models", daemon=True).start()
    return made


def wait_for(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run work on this process's event loop and return its result, in the task's thread."""
    return asyncio.run_coroutine_threadsafe(work, loop()).result()


def wake_workers() -> None:
    """Let whatever becomes due in this process wake workers."""
    cycles.use(CeleryDispatcher())
    for operation in OPERATIONS:
        asked[operation].use(CeleryDispatcher([partial(run_asked.delay, operation=operation)]))


def begin() -> None:
    """Make this process a worker: what it finds due wakes workers, its events go out in order."""
    loop.cache_clear()
    _sender.cache_clear()
    wake_workers()
    publish_with(LoopPublisher(loop()))


@lru_cache(maxsize=1)
def _sender() -> ThreadPoolExecutor:
    """Return the one thread of this process that speaks to the broker."""
    return ThreadPoolExecutor(1, thread_name_prefix="wake-ups")


class CeleryDispatcher:
    """Wake workers through the broker, in a thread of its own: who commits waits for no broker."""

    def __init__(
        self, queues: Sequence[Callable[[str], object]] = (), sender: Executor | None = None
    ) -> None:
        self._queues = queues or (run_observers.delay, run_reflectors.delay)
        self._sender = sender

    def wake(self, thread_id: UUID) -> None:
        """Queue the thread soon; a broker that is away costs time until the next sweep."""
        # What the caller works on is told along, for traces.
        (self._sender or _sender()).submit(copy_context().run, self._wake, str(thread_id))

    def _wake(self, thread_id: str) -> None:
        for queue in self._queues:
            wake(queue, thread_id)


_rest = Rest()


def wake(queue: Callable[[str], object], thread_id: str, rest: Rest = _rest) -> None:
    """Queue a thread where the broker answers; one that did not is left alone for a moment."""
    if rest.lasts:
        return
    try:
        queue(thread_id)
    except OperationalError:
        rest.begin()
        logger.warning("The broker does not answer; thread %s waits for the sweep.", thread_id)
