"""Wait for work within a bound, and let it go on when the bound is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

_LATE: set[asyncio.Task[Any]] = set()


async def at_most(seconds: float, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Return the work's task once it is done, or after so many seconds while it goes on."""
    task = asyncio.get_running_loop().create_task(work)
    # The loop holds tasks weakly: one that nobody waits for could vanish.
    _LATE.add(task)
    task.add_done_callback(_LATE.discard)
    await asyncio.wait({task}, timeout=max(0.0, seconds))
    return task


async def late_done() -> None:
    """Wait until nothing that took longer than its bound is under way on the running loop."""
    loop = asyncio.get_running_loop()
    while late := {task for task in _LATE if task.get_loop() is loop}:
        await asyncio.wait(late)
