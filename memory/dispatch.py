"""Wake whoever runs background work.

Cycles are rows, so a wake-up carries no work, only the news that some may be due. A lost
one costs time until the next sweep, nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Protocol
from uuid import UUID

from django.db import transaction

from memory import telemetry

logger = logging.getLogger(__name__)

Runner = Callable[[UUID], Awaitable[object]]


class Dispatcher(Protocol):
    """Wake a runner for a thread; must not block and may be called from any thread."""

    def wake(self, thread_id: UUID) -> None: ...


class NoDispatcher:
    """Leave all work to the sweep, as in a command that runs no server."""

    def wake(self, thread_id: UUID) -> None:
        """Do nothing."""


class LoopDispatcher:
    """Run work on one event loop, once at a time per thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, runner: Runner) -> None:
        self._loop = loop
        self._runner = runner
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._again: dict[UUID, Context] = {}
        self._stopped = False

    def wake(self, thread_id: UUID) -> None:
        """Start work on the thread, or once more after the work under way."""
        # The caller's context holds asgiref's marks of the thread it runs in; work that
        # inherited them could not reach the database.
        context = telemetry.apart()
        self._loop.call_soon_threadsafe(self._start, thread_id, context, context=context)

    def _start(self, thread_id: UUID, context: Context) -> None:
        if self._stopped:
            return
        if thread_id in self._tasks:
            self._again[thread_id] = context
            return
        self._tasks[thread_id] = self._loop.create_task(self._run(thread_id), context=context)

    async def _run(self, thread_id: UUID) -> None:
        try:
            await self._runner(thread_id)
        except Exception:
            # What it left is a row with a lease; the sweep comes back to it.
            logger.exception("Work on thread %s ended early.", thread_id)
        finally:
            del self._tasks[thread_id]
            context = self._again.pop(thread_id, None)
            if context is not None:
                self._start(thread_id, context)

    @property
    def busy(self) -> bool:
        """Tell whether any work is under way."""
        return bool(self._tasks)

    async def settled(self) -> None:
        """Wait for the work under way now; what it wakes anew is not waited for."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def stop(self, patience: float = 0.0) -> None:
        """Begin nothing more, and cancel what is still under way after ``patience`` seconds.

        What is cancelled is left to its lease.
        """
        self._stopped = True
        self._again.clear()
        tasks = list(self._tasks.values())
        if tasks and patience:
            await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Switch:
    """Lead wake-ups to the dispatcher this process uses; the composition root sets it."""

    def __init__(self) -> None:
        self._dispatcher: Dispatcher = NoDispatcher()

    def use(self, dispatcher: Dispatcher) -> Dispatcher:
        """Use a dispatcher from now on; return the one it replaces."""
        previous, self._dispatcher = self._dispatcher, dispatcher
        return previous

    def dispatch(self, thread_id: UUID) -> None:
        """Wake the runner for a thread once the surrounding transaction is committed."""
        transaction.on_commit(lambda: self._dispatcher.wake(thread_id), robust=True)


cycles = Switch()


def dispatch(thread_id: UUID) -> None:
    """Wake whoever runs cycles for a thread, after commit."""
    cycles.dispatch(thread_id)


#: What can be asked for whatever the thresholds say; each wakes a runner of its own.
OPERATIONS = ("observe", "buffer", "activate", "reflect")
asked = {operation: Switch() for operation in OPERATIONS}


def ask(operation: str, thread_id: UUID) -> None:
    """Wake whoever carries out an operation on a thread's memory, after commit.

    Unlike a cycle that is due, what was asked for has no row before it begins: a lost wake-up
    means asking again.
    """
    asked[operation].dispatch(thread_id)
