"""Run turns, cycles and the sweep on the server's own event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections, connection

from agents.lab.run import run_lab, runs
from agents.services import expire
from agents.services import sweep as turns_sweep
from agents.services.send import turns
from agents.services.turn import run_turns
from memory import tokens
from memory.dispatch import OPERATIONS, LoopDispatcher, asked, cycles
from memory.publish import LoopPublisher, publish_with
from memory.services import sweep as cycles_sweep
from memory.services.asked import carry_out
from memory.services.due import run_due
from memory.tasks import wake_workers
from omsite.thrift import be_thrifty

logger = logging.getLogger(__name__)

#: When what is kept no longer goes first, and how often then: not while a server starts.
EXPIRE_AFTER = timedelta(minutes=2)
EXPIRE_EVERY = timedelta(days=1)


class Background:
    """Own the work a serving process does besides answering requests."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, expire_after: timedelta = EXPIRE_AFTER
    ) -> None:
        self._loop = loop
        self._expire_after = expire_after
        self._turns = LoopDispatcher(loop, run_turns)
        self._cycles = LoopDispatcher(loop, run_due)
        self._asked = {name: LoopDispatcher(loop, partial(carry_out, name)) for name in OPERATIONS}
        self._labs = LoopDispatcher(loop, run_lab)
        self._timers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Take wake-ups from now on, sweep at once and then on a timer."""
        publish_with(LoopPublisher(self._loop))
        turns.use(self._turns)
        runs.use(self._labs)
        if settings.CONFIG.om_dispatcher == "celery":
            wake_workers()
        else:
            cycles.use(self._cycles)
            for name, switch in asked.items():
                switch.use(self._asked[name])
            self._timers.append(self._loop.create_task(self._expire()))
        self._timers.append(self._loop.create_task(self._tick()))

    async def stop(self, patience: float = 0.0) -> None:
        """Begin nothing more; let turns end for so many seconds, and cancel all other work.

        What is cancelled is left to its lease; prompts that wait are taken up by another process.
        Events still go to the loop: a thread that commits now must not wait for one that ends.
        """
        for timer in self._timers:
            timer.cancel()
        await asyncio.gather(*self._timers, return_exceptions=True)
        others = (self._cycles, self._labs, *self._asked.values())
        await asyncio.gather(self._turns.stop(patience), *(each.stop() for each in others))

    async def _tick(self) -> None:
        await asyncio.to_thread(warm)
        # A lease and the wait for the next sweep are what a death costs at most.
        await _repeat(sync_to_async(_sweep), settings.LEASE / 4)

    async def _expire(self) -> None:
        await asyncio.sleep(self._expire_after.total_seconds())
        # In a thread of its own: to look through all messages for their files takes a while.
        await _repeat(sync_to_async(_expire, thread_sensitive=False), EXPIRE_EVERY)


async def _repeat(work: Callable[[], Awaitable[None]], every: timedelta) -> None:
    while True:
        try:
            await work()
        except Exception:
            # A database that is away for a moment must not end the timer.
            logger.exception("The sweep failed and will be tried again.")
        await asyncio.sleep(every.total_seconds())


def warm() -> None:
    """Load what takes long, so that nobody waits for it, and look at it as here to stay."""
    tokens.warm()
    be_thrifty()


def _sweep() -> None:
    one_by_one(close_old_connections, turns_sweep.sweep, cycles_sweep.sweep)


def one_by_one(*sweeps: Callable[[], object]) -> None:
    """Sweep in turn; one that fails must not keep the others, and is tried again later."""
    for sweep in sweeps:
        try:
            sweep()
        except Exception:
            # A database that is away for a moment must not end the sweeping.
            logger.exception("A sweep failed and will be tried again.")


def _expire() -> None:
    try:
        expire.expire()
    finally:
        connection.close()
