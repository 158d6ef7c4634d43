"""Measure a production server as people meet it; one JSON line at the end.

Usage: python -m tests.bench.production [--seconds 300] [--history 60]
       [--only crowd|watch|at-once|two]

Two web processes, a worker and beat, on a PostgreSQL and a Redis of their own; the pages are held
open by a process of its own, whose share of a processor is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from tests.bench.crowd import spread
from tests.bench.texts import paragraph
from tests.fleet.people import Person
from tests.fleet.private import Postgres, servers, until
from tests.fleet.site import ROOT, Running, Site, site

PAGE_BYTES, TICKS = os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK")
PARTS = 5
TIMES = (
    "SELECT extract(epoch FROM {until} - {since})::float FROM agents_turn "
    "WHERE status = 'done' AND thread_id = ANY(%s::uuid[])"
)
OPEN = "SELECT count(*) FROM agents_turn WHERE status IN ('waiting', 'running')"
ENDED = "SELECT status, count(*) FROM agents_turn WHERE thread_id = ANY(%s::uuid[]) GROUP BY 1"


@dataclass
class Scale:
    """Sample what processes take of memory and processors, once a second."""

    processes: dict[str, int]
    resident: dict[str, list[float]] = field(default_factory=dict)
    used: dict[str, list[float]] = field(default_factory=dict)
    _ending: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Sample until stopped."""
        while not self._ending.wait(1.0):
            for name, pid in self.processes.items():
                self.resident.setdefault(name, []).append(_resident(pid))
                self.used.setdefault(name, []).append(_cpu(pid))

    def stop(self) -> dict[str, Any]:
        """Return for each process its memory early and late in MiB, and its share of a core."""
        self._ending.set()
        return {name: self._figures(name) for name in self.processes}

    def _figures(self, name: str) -> dict[str, float]:
        found, used = self.resident[name], self.used[name]
        part = max(1, len(found) // PARTS)
        early, late = mean(found[part : 2 * part]), mean(found[-part:])
        return {
            "rss_second_fifth": round(early, 1),
            "rss_last_fifth": round(late, 1),
            "rss_ratio": round(late / early, 3),
            "cpu": round((used[-1] - used[0]) / max(1, len(used) - 1), 2),
        }


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 2**20


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass
class Bench:
    """Hold a site that is measured."""

    options: argparse.Namespace
    postgres: Postgres
    site: Site
    webs: list[Running]
    people: list[Person]

    def threads(self, first: int, count: int) -> list[str]:
        """Return some threads, those of one person after those of another."""
        every = [thread for person in self.people for thread in person.threads]
        return every[first : first + count]

    def crowd(self) -> dict[str, Any]:
        """Measure many idle pages beside some that chat."""
        chatting, idle = self.options.chatting, self.options.idle
        talks, rests = self.threads(0, chatting), self.threads(chatting, 50)
        pages = [*talks, *(rests[n % len(rests)] for n in range(idle))]
        self.site.run("-m", "tests.fleet.history", str(self.options.history), *talks)
        found = self._generated(pages, chatting, rests, rate=2.0)
        answered = self.postgres.rows(TIMES.format(until="finished_at", since="created_at"), talks)
        found["answered_ms"] = spread([seconds for (seconds,) in answered])
        return found | {"turns": dict(self.postgres.rows(ENDED, talks))}

    def watch(self) -> dict[str, Any]:
        """Measure many pages of one thread in which something happens all the time."""
        thread = self.threads(self.options.chatting + 50, 1)
        return self._generated(thread * self.options.watching, 0, thread, rate=5.0)

    def at_once(self) -> dict[str, Any]:
        """Measure many conversations at the same time: each is sent all its prompts at once."""
        ours = self.threads(self.options.chatting + 51, 50)
        return self._answered(ours, self.options.each)

    def two(self) -> dict[str, Any]:
        """Let two processes take the prompts of one thread; none is lost, none doubled."""
        thread = self.threads(self.options.chatting + 101, 1)
        found = self._answered(thread, 20)
        stored = (
            "SELECT count(*), count(DISTINCT text) FROM memory_message "
            "WHERE thread_id = %s AND kind = 'request'"
        )
        prompts, different = self.postgres.rows(stored, thread[0])[0]
        verified = self.site.manage("om", "verify", "--thread", thread[0])
        return found | {
            "prompts": prompts, "different": different, "clean": verified.returncode == 0
        }  # fmt: skip

    def _answered(self, threads: Sequence[str], each: int) -> dict[str, Any]:
        of = {thread: person for person in self.people for thread in person.threads}
        refused, began = 0, time.monotonic()
        for number in range(each):
            for place, thread in enumerate(threads):
                web = self.webs[(number + place) % len(self.webs)]
                text = f"{number}: {paragraph(self.options.random)}"
                refused += of[thread].send(web.url, thread, text).status != 204
        until(lambda: self.postgres.rows(OPEN) == [(0,)], "all is answered", seconds=600)
        seconds = time.monotonic() - began
        took = self.postgres.rows(
            TIMES.format(until="finished_at", since="started_at"), list(threads)
        )
        return {
            "refused": refused,
            "turns": dict(self.postgres.rows(ENDED, list(threads))),
            "turns_per_second": round(len(threads) * each / seconds, 1),
            "turn_ms": spread([seconds for (seconds,) in took]),
        }

    def _generated(
        self, pages: list[str], chatting: int, probed: list[str], *, rate: float
    ) -> dict[str, Any]:
        asked = {
            "webs": [web.url for web in self.webs],
            "people": [vars(person) for person in self.people],
            "pages": pages, "chatting": chatting, "every": self.options.every,
            "seconds": self.options.seconds, "probed": probed, "rate": rate,
        }  # fmt: skip
        processes = {
            f"{each.name}-{number}": each.process.pid
            for number, each in enumerate(self.site.running)
            if each.process is not None
        }
        generator = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.crowd"], cwd=ROOT, env=self.site.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert generator.stdin is not None
        assert generator.stderr is not None
        generator.stdin.write(json.dumps(asked))
        generator.stdin.close()
        generator.stdin = None
        while (line := generator.stderr.readline()) and line != "begun\n":
            print(line, end="", file=sys.stderr)
        scale = Scale(processes)
        sampling = threading.Thread(target=scale.run, daemon=True)
        sampling.start()
        said, wrong = generator.communicate(timeout=self.options.seconds + 120)
        if generator.returncode:
            raise RuntimeError(f"The generator failed:\n{wrong}")
        return {**json.loads(said), "processes": scale.stop()}


ROWS = {"crowd": Bench.crowd, "watch": Bench.watch, "at-once": Bench.at_once, "two": Bench.two}


def main() -> None:
    """Measure and print."""
    import random

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--idle", type=int, default=500)
    parser.add_argument("--chatting", type=int, default=100)
    parser.add_argument("--every", type=float, default=10, help="seconds between two messages")
    parser.add_argument(
        "--history", type=int, default=60, help="messages the crowd has said before"
    )
    parser.add_argument("--watching", type=int, default=200)
    parser.add_argument("--each", type=int, default=10, help="prompts of each of 50 threads")
    parser.add_argument("--delay", default="0.05", help="OM_OFFLINE_DELAY")
    parser.add_argument("--only", choices=ROWS, action="append")
    options = parser.parse_args()
    options.random = random.Random(1)
    found: dict[str, Any] = {
        "seconds": options.seconds, "history": options.history, "cores": os.cpu_count()
    }  # fmt: skip
    with (
        servers() as (postgres, redis),
        site(
            postgres.url, redis.url,
            OM_OFFLINE_DELAY=options.delay, OM_LEASE_SECONDS="20", OM_SOCKETS_PER_USER="0",
        ) as running,
    ):  # fmt: skip
        people = running.prepare(
            "--threads", str(options.chatting + 110), "--resources", "10", "--options", "{}"
        )
        webs = [running.web() for _ in range(2)]
        running.worker()
        running.beat()
        running.ready(*webs)
        bench = Bench(options, postgres, running, webs, people)
        for name in options.only or ROWS:
            found[name] = ROWS[name](bench)
            found[name]["load_average"] = round(os.getloadavg()[0], 1)
            print(name, json.dumps(found[name]), file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
