"""Measure what open pages cost as a conversation goes on; one JSON line at the end.

Usage: python -m tests.bench.rendering [--threads 20] [--turns 30] [--measured 20] [--profile FILE]

On a database of its own beside the one DATABASE_URL names. Threads share one memory; one of them
talks. Each of its events is rendered as its own page renders it, and after each turn the pages
of all threads are compared with their rows. Processor time of the rendering thread, in
milliseconds, and statements; medians.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any
from uuid import UUID


@dataclass
class Costs:
    """Hold what was done how often, and what it cost."""

    count: Callable[[], int]
    profile: cProfile.Profile | None = None
    found: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, what: str, do: Callable[[], Any]) -> Any:
        """Do something and note its cost."""
        statements, began = self.count(), time.thread_time()
        if self.profile is not None:
            self.profile.enable()
        try:
            return do()
        finally:
            if self.profile is not None:
                self.profile.disable()
            cost = 1e3 * (time.thread_time() - began), self.count() - statements
            self.found[what].append(cost)

    def figures(self) -> dict[str, Any]:
        """Return usual costs by what was done."""
        return {
            what: {
                "times": len(costs),
                "cpu_ms": round(median(cpu for cpu, _ in costs), 2),
                "cpu_ms_mean": round(mean(cpu for cpu, _ in costs), 2),
                "statements": median(statements for _, statements in costs),
            }
            for what, costs in sorted(self.found.items())
        }


class Page:
    """Be open, and read nothing."""

    async def offer(self, regions: Sequence[Any]) -> None:
        pass

    async def dismiss(self) -> None:
        pass


def main(arguments: Sequence[str]) -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--turns", type=int, default=30, help="turns before it is measured")
    parser.add_argument("--measured", type=int, default=20, help="turns that are measured")
    parser.add_argument("--scope", choices=["thread", "resource"], default="resource")
    parser.add_argument("--profile", default="", help="where to write a profile of rendering")
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    os.environ.setdefault("SECRET_KEY", "only for benchmarks")
    import django

    django.setup()
    from tests.bench.database import own_database

    with own_database() as vendor:
        found = {"database": vendor, **asyncio.run(_measure(options))}
    print(json.dumps(found))


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    from memory.publish import publish_with
    from tests.bench.run import _threads
    from tests.bench.stage import Stage

    stage = Stage()
    await stage.start()
    talking, *others = await _threads(options.threads, scope=options.scope)
    for _ in range(4):
        for thread in others:
            await stage.turn(thread)
    for _ in range(options.turns):
        await stage.turn(talking)
    profile = cProfile.Profile() if options.profile else None
    costs = Costs(lambda: stage.counted.total, profile)
    watch = Watch(costs, [talking, *others])
    for number in range(options.measured):
        publish_with(lambda event: _render(costs, event))
        await stage.turn(talking)
        await stage.turn(others[number % len(others)])
        publish_with(lambda event: None)
        await watch.look("compare" if number else "open")
    await watch.look("compare, nothing moved")
    if profile is not None:
        profile.dump_stats(options.profile)
    return costs.figures()


def _render(costs: Costs, event: Any) -> None:
    """Render what an event can change, where and when it was published."""
    from agents import known, live
    from agents.rooms import _read

    known.hear(event.model_dump(mode="json"))
    names = set(live.REGIONS[event.kind])
    if event.kind != "turn.delta":
        costs.of(event.kind, lambda: _read(event.thread, names, None))
        for name in sorted(names):
            costs.of(f"{event.kind} {name}", lambda name=name: _read(event.thread, {name}, None))


class Watch:
    """Hold the pages of threads open, as a process does."""

    def __init__(self, costs: Costs, threads: Sequence[UUID]) -> None:
        self.costs, self.threads = costs, threads
        self.rooms: Any = None

    async def look(self, what: str) -> None:
        """Compare all pages with their rows, and render what moved, to the end."""
        from agents.rooms import Rooms

        statements, began = self.costs.count(), time.process_time()
        if self.rooms is None:
            self.rooms = Rooms()
            self.entered = [self.rooms.enter(thread, Page()) for thread in self.threads]
        else:
            await self.rooms.look()
        for room in self.entered:
            await room.settle()
        cost = 1e3 * (time.process_time() - began), self.costs.count() - statements
        self.costs.found[what].append(cost)


if __name__ == "__main__":
    main(sys.argv[1:])
