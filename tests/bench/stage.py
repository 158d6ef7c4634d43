"""Serve turns as the server does, and count what they cost."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection

from agents.services.send import send, turns
from agents.services.turn import run_turns
from memory.dispatch import LoopDispatcher, cycles
from memory.models import Cycle, Revision, Thread
from memory.publish import LoopPublisher, publish_with
from memory.services.due import run_due
from omsite.background import warm
from tests.bench.texts import Instant, paragraph

UNCOUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET ", "PRAGMA")


@dataclass
class Cost:
    """Hold what one turn cost: statements at the driver, milliseconds of CPU and of waiting."""

    kind: str
    messages: int
    statements: int
    cpu_ms: float
    wall_ms: float


@dataclass
class Counted:
    """Count the statements of this process's database thread."""

    total: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    keep: bool = False

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if not sql.lstrip().upper().startswith(UNCOUNTED):
            self.total += 1
            if self.keep:
                self.texts[sql[:160]] += 1
        return execute(sql, params, many, context)


class Stage:
    """Hold a process's background work on threads whose models answer at once."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)
        self.models = Instant(seed)
        self.counted = Counted()
        loop = asyncio.get_running_loop()
        self.runners = [
            LoopDispatcher(loop, partial(run_turns, resolve=self.models)),
            LoopDispatcher(loop, partial(run_due, resolve=self.models)),
        ]

    @contextmanager
    def _used(self) -> Any:
        before = turns.use(self.runners[0]), cycles.use(self.runners[1])
        try:
            yield
        finally:
            turns.use(before[0])
            cycles.use(before[1])

    async def start(self) -> None:
        """Load what a server loads before its first request, and count from now on."""
        await asyncio.to_thread(warm)
        publish_with(LoopPublisher(asyncio.get_running_loop()))
        await sync_to_async(lambda: connection.execute_wrappers.append(self.counted))()

    async def turn(self, thread_id: UUID) -> Cost:
        """Send one prompt, wait for its answer and all work it caused; return the cost."""
        before = await sync_to_async(_state)(thread_id)
        self.counted.total = 0
        wall, cpu = time.perf_counter(), time.process_time()
        with self._used():
            await sync_to_async(send)(thread_id, paragraph(self.random))
            await self.settle()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        statements = self.counted.total
        after = await sync_to_async(_state)(thread_id)
        return Cost(_kind(before, after), after["messages"], statements, 1e3 * cpu, 1e3 * wall)

    async def all_at_once(self, threads: Sequence[UUID], each: int) -> list[float]:
        """Lead conversations at the same time; return how many seconds each turn took."""
        waits: list[float] = []

        async def lead(thread_id: UUID) -> None:
            for _ in range(each):
                began = time.perf_counter()
                await sync_to_async(send)(thread_id, paragraph(self.random))
                await run_turns(thread_id, resolve=self.models)
                waits.append(time.perf_counter() - began)

        before = cycles.use(self.runners[1])
        try:
            await asyncio.gather(*(lead(thread_id) for thread_id in threads))
            await self.settle()
        finally:
            cycles.use(before)
        return waits

    async def settle(self) -> None:
        """Wait until neither a turn nor a cycle is under way."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            working = [runner.settled() for runner in self.runners if runner.busy]
            quiet = 0 if working else quiet + 1
            await asyncio.gather(*working)


def _state(thread_id: UUID) -> dict[str, int]:
    resource = Thread.objects.get(pk=thread_id).resource_id
    return {
        "messages": Thread.objects.get(pk=thread_id).last_position,
        "cycles": Cycle.objects.filter(record__resource=resource).count(),
        "revisions": Revision.objects.filter(record__resource=resource).count(),
    }


def _kind(before: dict[str, int], after: dict[str, int]) -> str:
    if after["revisions"] > before["revisions"]:
        return "activating"
    return "buffering" if after["cycles"] > before["cycles"] else "quiet"
