"""Run turns, cycles and the sweep on the server's own event loop."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from agents.services import sweep as turns_sweep
from agents.services.send import turns
from agents.services.turn import run_turns
from memory import tokens
from memory.dispatch import LoopDispatcher, cycles
from memory.services import sweep as cycles_sweep
from memory.services.due import run_due
from memory.tasks import CeleryDispatcher

logger = logging.getLogger(__name__)


class Background:
    """Own the work a serving process does besides answering requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._dispatchers = [LoopDispatcher(loop, run_turns), LoopDispatcher(loop, run_due)]
        self._timer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take wake-ups from now on, sweep at once and then on a timer."""
        for_turns, for_cycles = self._dispatchers
        turns.use(for_turns)
        celery = settings.CONFIG.om_dispatcher == "celery"
        cycles.use(CeleryDispatcher() if celery else for_cycles)
        self._timer = self._loop.create_task(self._tick())

    async def stop(self) -> None:
        """Cancel the work under way: turns and cycles are left to their leases."""
        if self._timer is not None:
            self._timer.cancel()
            with suppress(asyncio.CancelledError):
                await self._timer
        for dispatcher in self._dispatchers:
            await dispatcher.stop()

    async def _tick(self) -> None:
        # The ranks of the tokenizer take half a second to load; nobody should wait for them.
        await asyncio.to_thread(tokens.warm)
        while True:
            try:
                await sync_to_async(_sweep)()
            except Exception:
                # A database that is away for a moment must not end the sweeping.
                logger.exception("The sweep failed and will be tried again.")
            await asyncio.sleep(settings.LEASE.total_seconds() / 2)


def _sweep() -> None:
    close_old_connections()
    turns_sweep.sweep()
    cycles_sweep.sweep()
