"""Measure what a turn costs: statements, processor time, memory; one JSON line at the end.

Usage: python -m tests.bench.run [--turns 5050] [--threads 50] [--each 20]

On a database of its own beside the one DATABASE_URL names, with models that answer at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource as usage
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

WINDOWS = {"10": (6, 14), "100": (80, 120), "1000": (900, 1_100), "10000": (9_900, 10_100)}
SHORT_THREADS = 6
SHORT_TURNS = 62
INSTRUCTIONS = "You are a helpful assistant. Answer briefly."


def main(arguments: Sequence[str]) -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5_050, help="turns of the long thread")
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--each", type=int, default=20, help="turns of each of several threads")
    parser.add_argument("--only", choices=["long", "resource", "at-once"], default="")
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
    found: dict[str, Any] = {}
    if options.only in ("", "long"):
        found |= await _long(options.turns)
    if options.only in ("", "resource"):
        found["resource"] = await _resource(options.threads, options.each)
    if options.only in ("", "at-once"):
        found["at_once"] = await _at_once(options.threads, options.each)
    return found


async def _long(turns: int) -> dict[str, Any]:
    """Lead a few short conversations and a long one; return costs by length of the thread."""
    from tests.bench.stage import Stage

    stage = Stage()
    await stage.start()
    warm = await _threads(1)
    for _ in range(30):
        await stage.turn(warm[0])
    costs = []
    for thread in await _threads(SHORT_THREADS):
        costs += [await stage.turn(thread) for _ in range(SHORT_TURNS)]
    (long,) = await _threads(1)
    in_order, resident = [], []
    for number in range(turns):
        in_order.append(await stage.turn(long))
        if number % 25 == 0:
            resident.append(_resident())
        if number % 500 == 499:
            print(f"{number + 1} turns, {_resident()} MiB", file=sys.stderr, flush=True)
    costs += in_order
    return {
        "statements": {
            kind: _median(c.statements for c in costs if c.kind == kind)
            for kind in ("quiet", "buffering", "activating")
        },
        "cpu_ms": {
            name: _median(c.cpu_ms for c in costs if low <= c.messages <= high)
            for name, (low, high) in WINDOWS.items()
            if any(low <= c.messages <= high for c in costs)
        },
        "flat": _flat(in_order),
        "largest_request_tokens": await _largest_request(long),
        "memory_block_kept": await _prefix_kept(long),
        "rss_mib": {"first": resident[len(resident) // 10], "last": resident[-1]},
    }


def _flat(costs: Sequence[Any]) -> dict[str, Any]:
    """Compare the last 500 turns with turns 500 to 1,000."""
    if len(costs) < 1_500:
        return {}
    early, late = costs[500:1_000], costs[-500:]
    return {
        "statements": round(
            _mean(c.statements for c in late) / _mean(c.statements for c in early), 3
        ),
        "cpu": round(_mean(c.cpu_ms for c in late) / _mean(c.cpu_ms for c in early), 3),
    }


async def _resource(threads: int, each: int) -> dict[str, Any]:
    """Lead the same conversations with memories of their own, and with one for all."""
    found = {}
    for scope in ("thread", "resource"):
        from tests.bench.stage import Stage

        stage = Stage()
        await stage.start()
        ids = await _threads(threads, scope=scope)
        costs = [await stage.turn(thread) for _ in range(each) for thread in ids]
        late = costs[len(costs) // 2 :]
        found[scope] = {
            "statements": _median(c.statements for c in late),
            "statements_mean": round(_mean(c.statements for c in late), 1),
            "cpu_ms": _median(c.cpu_ms for c in late),
            "cpu_ms_mean": round(_mean(c.cpu_ms for c in late), 1),
        }
    return found


async def _at_once(threads: int, each: int) -> dict[str, Any]:
    """Lead many conversations at the same time; return turns a second and how long one takes."""
    from tests.bench.stage import Stage

    stage = Stage()
    await stage.start()
    ids = await _threads(threads)
    began = time.perf_counter()
    waits = await stage.all_at_once(ids, each)
    seconds = time.perf_counter() - began
    return {
        "turns_per_second": round(threads * each / seconds, 1),
        "median_ms": round(1e3 * statistics.median(waits)),
        "p95_ms": round(1e3 * sorted(waits)[int(0.95 * len(waits))]),
    }


async def _threads(count: int, *, scope: str = "thread") -> list[UUID]:
    from asgiref.sync import sync_to_async

    return await sync_to_async(_make_threads)(count, scope)


def _make_threads(count: int, scope: str) -> list[UUID]:
    from agents.models import AgentProfile
    from agents.services.thread import start
    from memory.models import Resource

    profile, _ = AgentProfile.objects.get_or_create(
        slug=f"bench-{scope}",
        defaults={
            "name": "Bench",
            "instructions": INSTRUCTIONS,
            "model": "fake",
            "memory_options": {"scope": scope},
        },
    )
    number = Resource.objects.count()
    shared = Resource.objects.create(key=f"bench-{number}", name="Bench")
    return [start(shared, profile).pk for _ in range(count)]


async def _largest_request(thread: UUID) -> int:
    from django.db.models import Max

    from agents.models import RequestSnapshot

    shots = RequestSnapshot.objects.filter(turn__thread=thread)
    return (await shots.aaggregate(largest=Max("total")))["largest"] or 0


async def _prefix_kept(thread: UUID) -> float:
    """Return in which share of turns with the same revision the memory block stayed the same."""
    from agents.models import RequestSnapshot

    shots = RequestSnapshot.objects.filter(turn__thread=thread).order_by("pk")
    kept = total = 0
    before: tuple[int, str] | None = None
    async for revision, blocks in shots.values_list("revision", "blocks"):
        memory = next((block for block in blocks if block["kind"] == "memory"), None)
        if memory is None:
            continue
        now = (revision, memory["hash"])
        if before is not None and before[0] == revision:
            total += 1
            kept += before == now
        before = now
    return round(kept / total, 4) if total else 1.0


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * usage.getpagesize() // 2**20


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return round(statistics.median(found), 2) if found else 0


def _mean(values: Iterable[float]) -> float:
    return statistics.mean(values)


if __name__ == "__main__":
    main(sys.argv[1:])
