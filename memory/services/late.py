"""Wait for work within a bound, and let it go on when the bound is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any

ASK_SECONDS = 0.5

_LATE: set[asyncio.Task[Any]] = set()


async def at_most(
    seconds: float,
    work: Coroutine[Any, Any, Any],
    *,
    wanted: Callable[[], Awaitable[bool]] | None = None,
) -> asyncio.Task[Any]:
    """Return the work's task once it is done, or after so many seconds while it goes on.

    It is not waited for either once ``wanted``, asked now and then, says no.
    """
    task = asyncio.get_running_loop().create_task(work)
    # The loop holds tasks weakly: one that nobody waits for could vanish.
    _LATE.add(task)
    task.add_done_callback(_LATE.discard)
    until = monotonic() + max(0.0, seconds)
    while True:
        left = max(0.0, until - monotonic())
        await asyncio.wait({task}, timeout=left if wanted is None else min(left, ASK_SECONDS))
        if task.done() or wanted is None or monotonic() >= until or not await wanted():
            return task


async def late_done() -> None:
    """Wait until nothing that took longer than its bound is under way on the running loop."""
    loop = asyncio.get_running_loop()
    while late := {task for task in _LATE if task.get_loop() is loop}:
        await asyncio.wait(late)
