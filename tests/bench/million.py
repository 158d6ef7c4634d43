"""Look at every statement of a turn and of its pages with a million messages; one JSON line.

Usage: DATABASE_URL=postgresql://… python -m tests.bench.million [--long 10] [--short 8000]

The database is one of its own beside the one that is named. It is filled from a conversation that
is really led, first to 10,000 messages and then to the whole; the same turns are measured in both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

LENGTH = 100
LONG_BLOCKS = 200
RESOURCES = 100
#: Small enough that a turn in four makes something due.
OPTIONS = {"message_tokens": 3_000, "observation_tokens": 60_000}
PAGES = {
    "chat": "/chat/{}/",
    "regions": "/chat/{}/regions",
    "earlier": "/chat/{}/earlier?from=1&before=60",
    "memory": "/memory/{}/",
}


def main(arguments: Sequence[str]) -> int:
    """Fill, measure and print; 1 when a large table is read from end to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, default=10, help="threads of 20,000 messages")
    parser.add_argument("--short", type=int, default=8_000, help="threads of 100")
    parser.add_argument("--turns", type=int, default=60)
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    os.environ.setdefault("SECRET_KEY", "only for benchmarks")
    import django

    django.setup()
    from django.db import connection

    from tests.bench.database import own_database

    if connection.vendor != "postgresql":
        print("Name a PostgreSQL: DATABASE_URL=postgresql://USER@HOST/NAME", file=sys.stderr)
        return 2
    with own_database():
        found = asyncio.run(measure(options.long, options.short, options.turns))
    print(json.dumps(found))
    return bool(found["million"]["sequential"])


async def measure(long: int, short: int, turns: int) -> dict[str, Any]:
    """Return what turns cost with 10,000 messages and with all of them."""
    from asgiref.sync import sync_to_async

    from tests.bench.stage import Stage

    stage = Stage()
    await stage.start()
    world = await sync_to_async(World)()
    for _ in range(LENGTH // 2):
        await stage.turn(world.template.pk)
    found: dict[str, Any] = {}
    await sync_to_async(world.fill)("few", 1, 20, short=80)
    found["ten_thousand"] = await _measured(stage, world, "few", turns)
    began = time.monotonic()
    await sync_to_async(world.fill)("all", long, LONG_BLOCKS, short=short)
    found["filled_in_s"] = round(time.monotonic() - began)
    found["million"] = await _measured(stage, world, "all", turns)
    few, many = found["ten_thousand"], found["million"]
    found["ratio"] = {
        name: round(many["turns"][name] / few["turns"][name], 2) for name in ("cpu_ms", "wall_ms")
    }
    return found


async def _measured(stage: Any, world: World, name: str, turns: int) -> dict[str, Any]:
    from asgiref.sync import sync_to_async

    from tests.bench.plans import Plans

    thread = world.longest(name)
    # What is read the first time stays in the process: what a turn costs is what the next one does.
    costs = [await stage.turn(thread) for _ in range(turns)][turns // 6 :]
    plans = Plans()
    await sync_to_async(lambda: _look(plans, world, thread))()
    context = plans.on("turn")
    await sync_to_async(context.__enter__)()
    kinds = {(await stage.turn(thread)).kind for _ in range(turns // 2)}
    await sync_to_async(context.__exit__)(None, None, None)
    return {
        "messages": await sync_to_async(world.messages)(),
        "turns": {
            "cpu_ms": _mean(cost.cpu_ms for cost in costs),
            "wall_ms": _mean(cost.wall_ms for cost in costs),
            "statements": _mean(cost.statements for cost in costs),
        },
        "kinds_explained": sorted(kinds),
        "pages_ms": await sync_to_async(world.timed)(thread),
        "statements_explained": plans.by_doing,
        "sequential": plans.sequential,
    }


def _look(plans: Any, world: World, thread: UUID) -> None:
    for name, address in PAGES.items():
        with plans.on(name):
            answer = world.client.get(address.format(thread))
            assert answer.status_code == 200, f"{address} answered {answer.status_code}"


def _mean(values: Any) -> float:
    return round(statistics.mean(values), 1)


class World:
    """Hold the conversation that all others are made of, and somebody who sees them."""

    def __init__(self) -> None:
        from django.contrib.auth import get_user_model
        from django.test import Client

        from agents.models import AgentProfile
        from agents.services.thread import start
        from memory.models import Resource

        person = get_user_model().objects.create_user("bench")
        self.resources = [
            Resource.objects.create(key=f"bench-{number}", name="Bench")
            for number in range(RESOURCES)
        ]
        for resource in self.resources:
            resource.members.add(person)
        profile = AgentProfile.objects.create(
            slug="bench", name="Bench", instructions="Answer briefly.", model="fake",
            memory_options=OPTIONS,
        )  # fmt: skip
        self.template = start(self.resources[0], profile)
        self.client = Client(SERVER_NAME="localhost")
        self.client.force_login(person)

    def fill(self, name: str, long: int, blocks: int, *, short: int) -> None:
        """Add threads, long ones and short ones."""
        from django.db import connection

        from tests.bench.clone import Copies, copy

        self.template.refresh_from_db()
        first = self.resources[0].pk
        copy(self.template, Copies(f"{name}-long", long, blocks, RESOURCES, first))
        copy(self.template, Copies(f"{name}-short", short, 1, RESOURCES, first))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def longest(self, name: str) -> UUID:
        """Return the first long thread."""
        from hashlib import md5

        text = f"{self.template.pk}{name}-long-1"
        return UUID(md5(text.encode(), usedforsecurity=False).hexdigest())

    def messages(self) -> int:
        """Return how many messages there are."""
        from memory.models import Message

        return Message.objects.count()

    def timed(self, thread: UUID) -> dict[str, float]:
        """Return how long pages take, the second time."""
        found = {}
        for name, address in PAGES.items():
            self.client.get(address.format(thread))
            began = time.perf_counter()
            self.client.get(address.format(thread))
            found[name] = round(1e3 * (time.perf_counter() - began), 1)
        return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
