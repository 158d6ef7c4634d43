"""Run turns, cycles and the sweep on the server's own event loop."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import suppress
from functools import partial

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from agents.lab.run import run_lab, runs
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

logger = logging.getLogger(__name__)

COLLECT_AFTER = 10_000


class Background:
    """Own the work a serving process does besides answering requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turns = LoopDispatcher(loop, run_turns)
        self._cycles = LoopDispatcher(loop, run_due)
        self._asked = {name: LoopDispatcher(loop, partial(carry_out, name)) for name in OPERATIONS}
        self._labs = LoopDispatcher(loop, run_lab)
        self._timer: asyncio.Task[None] | None = None

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
        self._timer = self._loop.create_task(self._tick())

    async def stop(self) -> None:
        """Cancel the work under way: turns and cycles are left to their leases.

        Events still go to the loop: a thread that commits now must not wait for one that ends.
        """
        if self._timer is not None:
            self._timer.cancel()
            with suppress(asyncio.CancelledError):
                await self._timer
        for dispatcher in (self._turns, self._cycles, self._labs, *self._asked.values()):
            await dispatcher.stop()

    async def _tick(self) -> None:
        await asyncio.to_thread(warm)
        while True:
            try:
                await sync_to_async(_sweep)()
            except Exception:
                # A database that is away for a moment must not end the sweeping.
                logger.exception("The sweep failed and will be tried again.")
            await asyncio.sleep(settings.LEASE.total_seconds() / 2)


def warm() -> None:
    """Load what takes long, so that nobody waits for it, and look at it as here to stay.

    A turn makes thousands of short-lived objects. To search all that is loaded for rubbish each
    time was a tenth of what a turn cost.
    """
    tokens.warm()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def _sweep() -> None:
    close_old_connections()
    turns_sweep.sweep()
    cycles_sweep.sweep()
