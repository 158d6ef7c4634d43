"""Kill web processes and workers while many people talk; then look what is left of it all.

By hand: ``python -m tests.crash.fleet --turns 1000``, on a PostgreSQL and a Redis of its own.
The last line is JSON. With ``--rolling`` the web processes are replaced one after another
instead, by SIGTERM, and no turn may be cut short.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.crash.load import Load, Watch
from tests.fleet.private import Postgres, servers, until
from tests.fleet.site import Running, Site, pick, site

WEBS = 2
IN_TIME = 30.0
#: One death for so many turns, and at least so many.
TURNS_PER_KILL, FEWEST_KILLS = 20, 4
#: Between two deaths; a process takes some of it to come back.
PAUSES = (1.0, 6.0)


@dataclass
class Trial:
    """Hold what a run was and what is wrong after it."""

    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def demand(self, true: bool, otherwise: str) -> None:
        """Note what is wrong unless a condition holds."""
        if not true:
            self.wrong.append(otherwise)


def killing(
    turns: int, seed: int, *, threads: int = 20, resources: int = 5, lease: int = 20
) -> Trial:
    """Kill processes at random instants while people talk; return what is wrong then."""
    draw = random.Random(seed)
    kills = max(FEWEST_KILLS, turns // TURNS_PER_KILL)

    def disturb(running: Site, webs: list[Running], others: list[Running], watch: Watch) -> int:
        time.sleep(draw.uniform(*PAUSES))
        victim = draw.choice([*webs, *others])
        running.kill(victim)
        watch.remember()
        running.start(victim)
        return 1

    trial = _run(turns, threads, resources, lease, disturb, most=kills)
    trial.figures |= {"seed": seed, "kills": trial.figures.pop("disturbed")}
    left = lease + max(trial.figures[f"{what}_left_s"] for what in ("turn", "cycle"))
    trial.figures["taken_up_within_s"] = round(max(left, trial.figures["prompt_left_s"]), 1)
    trial.demand(
        trial.figures["taken_up_within_s"] <= IN_TIME,
        f"something was left alone for {trial.figures['taken_up_within_s']} s",
    )
    return trial


def rolling(turns: int, *, threads: int = 20, resources: int = 5, lease: int = 20) -> Trial:
    """Replace web processes and workers in turn while people talk; no turn may be cut short."""

    def disturb(running: Site, webs: list[Running], others: list[Running], watch: Watch) -> int:
        for each in [*webs, *others]:
            running.signal(each, signal.SIGTERM)
            watch.remember()
            running.start(each)
            running.ready(*webs)
        return len(webs) + len(others)

    trial = _run(turns, threads, resources, lease, disturb, most=1, delay="0.5")
    trial.figures["replaced"] = trial.figures.pop("disturbed")
    trial.demand(not trial.figures["retried"], f"turns were cut short: {trial.figures['retried']}")
    return trial


Disturb = Callable[[Site, list[Running], list[Running], Watch], int]


def _run(
    turns: int, threads: int, resources: int, lease: int, disturb: Disturb, *, most: int,
    delay: str = "0.1",
) -> Trial:  # fmt: skip
    settings = {"OM_LEASE_SECONDS": str(lease), "OM_OFFLINE_DELAY": delay}
    with servers() as (postgres, redis), site(postgres.url, redis.url, **settings) as running:
        people = running.prepare("--threads", str(threads), "--resources", str(resources))
        webs = [running.web() for _ in range(WEBS)]
        others = [running.worker()]
        running.beat()
        running.ready(*webs)
        trial, began, disturbed = Trial(), time.monotonic(), 0
        with Watch(postgres.url) as watch:
            load = Load(watch, webs, each=-(-turns // threads))
            talking = load.run(pick(people))
            while talking.is_alive() and disturbed < most:
                disturbed += disturb(running, webs, others, watch)
            talking.join()
            seconds = time.monotonic() - began
            _settle(trial, postgres)
            watch.remember()
        _judge(trial, running, postgres, load, watch)
        trial.figures |= _figures(load, watch, seconds) | {"disturbed": disturbed}
        return trial


def _settle(trial: Trial, postgres: Postgres) -> None:
    """Wait until nothing runs any more."""
    running = "SELECT count(*) FROM memory_cycle WHERE status = 'running'"
    try:
        until(lambda: postgres.rows(running) == [(0,)], "no cycle runs", seconds=120)
    except TimeoutError as late:
        trial.wrong.append(str(late))


def _judge(trial: Trial, running: Site, postgres: Postgres, load: Load, watch: Watch) -> None:
    verified = running.manage("om", "verify")
    trial.demand(verified.returncode == 0, verified.stdout + verified.stderr)
    trial.demand(not load.failures, f"people gave up: {load.failures}")
    trial.demand(not watch.changed, f"messages are gone or changed: {sorted(watch.changed)}")
    trial.demand(not load.not_shown, f"no page says what became of a turn of {load.not_shown}")
    asked = "SELECT text, count(*) FROM memory_message WHERE kind = 'request' GROUP BY text"
    prompts = {text.strip(): count for text, count in postgres.rows(asked)}
    lost = [text for text in load.said if text not in prompts]
    trial.demand(not lost, f"prompts that were taken are not stored: {lost}")
    extra = sum(prompts.values()) - sum(load.said.values()) - load.retried.total()
    trial.demand(extra == 0, f"{extra} prompts are stored more often than they were sent")
    cycles = "SELECT status, interrupted, count(*) FROM memory_cycle GROUP BY 1, 2"
    found = {(status, cut): count for status, cut, count in postgres.rows(cycles)}
    trial.figures["cycles"] = {
        "done": found.get(("done", False), 0),
        "interrupted": sum(count for (_, cut), count in found.items() if cut),
    }
    trial.demand(trial.figures["cycles"]["done"] > 0, "no Observer ever finished")


def _figures(load: Load, watch: Watch, seconds: float) -> dict[str, Any]:
    return {
        "turns": len(load.waits),
        "seconds": round(seconds),
        "retried": dict(load.retried),
        "turn_left_s": round(watch.turn_left, 1),
        "cycle_left_s": round(watch.cycle_left, 1),
        "prompt_left_s": round(watch.prompt_left, 1),
        "answered_after_s": _spread(load.waits),
        "taken_after_s": _spread(load.sends),
        "messages_seen": len(watch.seen),
    }


def _spread(values: list[float]) -> dict[str, float]:
    """Return how long things took: usually, seldom and at worst."""
    found = sorted(values) or [0.0]
    at = {"median": len(found) // 2, "p95": int(0.95 * len(found)), "max": -1}
    return {name: round(found[place], 2) for name, place in at.items()}


def main() -> int:
    """Run one trial by hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--resources", type=int, default=5)
    parser.add_argument("--lease", type=int, default=20, help="OM_LEASE_SECONDS")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--rolling", action="store_true", help="replace processes by SIGTERM")
    options = parser.parse_args()
    of = {"threads": options.threads, "resources": options.resources, "lease": options.lease}
    if options.rolling:
        trial = rolling(options.turns, **of)
    else:
        trial = killing(options.turns, options.seed, **of)
    print("\n".join(trial.wrong) or "clean", file=sys.stderr)
    print(json.dumps({**trial.figures, "wrong": len(trial.wrong)}))
    return bool(trial.wrong)


if __name__ == "__main__":
    sys.exit(main())
