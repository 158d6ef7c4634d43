"""Run what is due on the event loop of the runs that made it due, where no server does it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from uuid import UUID

from memory.dispatch import LoopDispatcher, NoDispatcher, cycles
from memory.services.cycles import Resolve, resolve_model
from memory.services.due import run_due
from memory.services.kept import Recent
from memory.services.late import late_done

logger = logging.getLogger(__name__)

MOST_THREADS = 4096

Loop = asyncio.AbstractEventLoop


@dataclass(frozen=True)
class _Home:
    loop: Loop
    resolve: Resolve


class RunDispatcher:
    """Wake the loop that a thread's last run was on; other threads are left to the sweep."""

    def __init__(self) -> None:
        self._homes: Recent[_Home] = Recent(MOST_THREADS)
        self._dispatchers: dict[Loop, LoopDispatcher] = {}

    def settle(self, thread_id: UUID, *, resolve: Resolve) -> None:
        """Remember that a thread's work belongs on the running loop."""
        loop = asyncio.get_running_loop()
        self._homes.put(thread_id, _Home(loop, resolve))
        if loop not in self._dispatchers:
            # Each of them holds its loop: a program that runs one after another would keep all.
            for ended in [each for each in self._dispatchers.copy() if each.is_closed()]:
                self._dispatchers.pop(ended, None)
            self._dispatchers[loop] = LoopDispatcher(loop, self._run)

    def wake(self, thread_id: UUID) -> None:
        """Start work on the thread; a loop that ended leaves it to the next run."""
        home = self._homes.get(thread_id)
        dispatcher = None if home is None else self._dispatchers.get(home.loop)
        if dispatcher is None:
            return
        try:
            dispatcher.wake(thread_id)
        except RuntimeError:
            logger.debug("The loop of thread %s has ended.", thread_id)

    def of(self, loop: Loop) -> LoopDispatcher | None:
        """Return what works on a loop, if anything ever was to."""
        return self._dispatchers.get(loop)

    async def _run(self, thread_id: UUID) -> None:
        home = self._homes.get(thread_id)
        await run_due(thread_id, resolve=resolve_model if home is None else home.resolve)


_dispatcher = RunDispatcher()


def at_home(thread_id: UUID, *, resolve: Resolve) -> None:
    """Have a thread's work done on the running loop, unless a server's dispatcher is in use."""
    in_use = cycles.use(_dispatcher)
    if isinstance(in_use, NoDispatcher | RunDispatcher):
        _dispatcher.settle(thread_id, resolve=resolve)
    else:
        cycles.use(in_use)


async def settled() -> None:
    """Wait until no work is under way on the running loop, nor any that it wakes anew."""
    await late_done()
    work = _dispatcher.of(asyncio.get_running_loop())
    while work is not None:
        await asyncio.sleep(0)  # Wake-ups that were just sent arrive now.
        if not work.busy:
            return
        await work.settled()
