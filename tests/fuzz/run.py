"""Play seeds and say what went wrong: ``python -m tests.fuzz.run --seeds 50``.

The last line is JSON. ``--first 17 --seeds 1 --log`` plays seed 17 alone and tells its story.
"""

import argparse
import gc
import json
import logging
import os
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.crash.database import own_database

from . import jobs

INVARIANTS = (
    "coverage",
    "order",
    "empty",
    "pairs",
    "turns",
    "destroyed",
    "edits",
    "errors",
    "verify",
)
OPERATIONS = 200
MOST_TOLD = 5
WARM = 60
TOLD_EVERY = 50
AUDIT_EVERY = 100
ENDS_EVERY = 3
EXERCISED = (
    *("kills", "cas_lost", "lease_lapsed", "activations", "reflections", "edits_during_cycle"),
    *(
        "restores",
        "shown_again",
        "forks",
        "erases",
        "erased_threads",
        "erased_resources",
        "clears",
        "configs",
    ),
    *("compacts", "overflows", "interrupted", "tool_calls"),
    *("observer_raise", "observer_nothing", "observer_slow"),
)
"""What must have happened in any fifty seeds."""
EXERCISED_ALONE = ("left_out", "fallbacks", "discarded_chunks", "scopes")
"""What happens too seldom to be sure of where a seed is not the same each time."""


def configure(url, processes=1):
    """Set up Django on a database, without what only slows the harness down."""
    os.environ.update(
        DJANGO_SETTINGS_MODULE="omsite.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="1",
        DATABASE_URL=url,
        REDIS_URL="",
        SECRET_KEY="only for the fuzz",
        OM_MODEL="fake",
    )
    from django.conf import settings

    options = settings.DATABASES["default"]["OPTIONS"]
    if url.startswith("sqlite"):
        # A rollback journal in memory dies with its process and leaves half a transaction.
        journal = "MEMORY" if processes == 1 else "WAL"
        options["init_command"] = f"PRAGMA journal_mode={journal}; PRAGMA synchronous=OFF;"
    else:
        # Pools have threads of their own, which no fork survives. The server is never killed.
        options.pop("pool", None)
        options["options"] = "-c synchronous_commit=off"
    settings.CHANNEL_LAYERS = {}

    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    logging.disable(logging.CRITICAL)
    call_command("migrate", verbosity=0)
    install()
    count_lost_races()
    if processes > 1:
        # What is loaded and reckoned once is so in every fork.
        play(0, WARM)
        connections.close_all()
    # Nobody need look through it for garbage, nor copy it.
    gc.freeze()
    gc.set_threshold(50_000)


def count_lost_races():
    """Count each time somebody found that another was first."""
    from agents.models import TurnLost
    from memory.models.cycle import CycleLost
    from memory.models.record import CursorMoved, RecordMoved

    from .world import playing

    def counted(self, *args):
        Exception.__init__(self, *args)
        playing[0].happened["cas_lost"] += 1

    for lost in (TurnLost, CycleLost, CursorMoved, RecordMoved):
        lost.__init__ = counted


def install():
    """Put the harness in place of clocks, threads and models."""
    import memory.publish
    from agents.services import turn

    from . import clock, demands, processes, world
    from .requests import under_way

    clock.install()
    processes.install()
    world.install()
    demands.install()
    memory.publish.async_to_sync = lambda send: lambda event: None
    made = turn._memory

    def remembered(running, resolve):
        memory = made(running, resolve)
        under_way.get().memory = memory
        return memory

    turn._memory = remembered
    explain = turn.llm.explain

    def explained(error):
        frames = traceback.extract_tb(error.__traceback__)[-5:]
        places = " < ".join(f"{f.filename.split('/')[-1]}:{f.lineno}" for f in reversed(frames))
        world.playing[0].causes[explain(error)] = f"{type(error).__name__}: {error} ({places})"
        return explain(error)

    turn.llm.explain = explained


def play(seed, operations=OPERATIONS, log=None):
    """Play one seed in this process; return its world."""
    from . import clock

    return clock.run(_play(seed, operations, log))


async def _play(seed, operations, log):
    from django.db import connection

    from .play import Play
    from .processes import guard
    from .world import World, empty, playing

    draw = random.Random(seed)
    empty()
    world = World(seed, draw)
    playing[:] = [world]
    world.make(draw)
    game = Play(world, draw)
    with connection.execute_wrapper(guard):
        for number in range(operations):
            said = await game.step()
            world.operations += 1
            world.log.append(f"{number:3} {said}")
            if log is not None:
                print(world.log[-1])
            if number % AUDIT_EVERY == AUDIT_EVERY - 1:
                game.audits.all()
            if world.found:
                break
    await finish(world, game)
    return world


async def finish(world, game):
    """Let all leases run out, and check what remains: the rows."""
    from .watch import counted

    await game.end()
    game.audits.all()
    game.audits.nowhere()
    _verify(world)
    if not world.found and world.seed % ENDS_EVERY == 0:
        game.end_of_all()
    else:
        counted(world)


def _verify(world):
    from agents.om.verify import check

    for violation in check().violations:
        world.broken("verify", f"{violation.invariant}: {violation.sentence}")


def tell(world, asked):
    """Print what went wrong with a seed, and how to play it again."""
    if not asked.log:
        print("\n".join(world.log))
    for invariant, sentence in world.found[:MOST_TOLD]:
        print(f"seed {world.seed}: {invariant}: {sentence}")
    many = f" PROCESSES={asked.processes}" if asked.processes > 1 else ""
    print(f"Play it again: make fuzz FIRST={world.seed} SEEDS=1 LOG=1{many}", flush=True)


def main():
    """Play the seeds asked for; return 1 when anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="interpreters that share the seeds")
    parser.add_argument("--all-exercised", action="store_true", help="fail when any of it is 0")
    parser.add_argument("--log", action="store_true")
    parser.add_argument("--fault", help="break memory so first; see tests/fuzz/faults.py")
    parser.add_argument("--until-found", action="store_true", help="stop at the first violation")
    asked = parser.parse_args()
    began = time.monotonic()
    summary = jobs.play_all(asked) if asked.jobs > 1 else play_here(asked)
    summary["seconds"] = round(time.monotonic() - began, 1)
    demanded = EXERCISED + (EXERCISED_ALONE if asked.processes == 1 else ())
    never = [name for name in demanded if not summary["exercised"].get(name)]
    if asked.all_exercised and never:
        print(f"Never exercised: {', '.join(never)}.")
    print(json.dumps(summary))
    return bool(sum(summary["violations"].values()) or (asked.all_exercised and never))


def play_here(asked):
    """Play the seeds in this interpreter, on a database of its own; return what happened."""
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=fast) as directory, own_database(directory) as database:
        configure(database.url, asked.processes)
        if asked.fault:
            from .faults import FAULTS

            FAULTS[asked.fault]()
        summary = play_all(asked)
        from django.db import connections

        connections.close_all()
    return summary


def play_all(asked):
    """Play seeds one after another; return the sum of what happened."""
    violations, exercised, played = Counter(dict.fromkeys(INVARIANTS, 0)), Counter(), 0
    exercised.update(dict.fromkeys(EXERCISED + EXERCISED_ALONE, 0))
    for seed in range(asked.first, asked.first + asked.seeds):
        world = play_one(seed, asked)
        played += world.operations
        exercised.update(world.happened)
        if world.found:
            violations.update(invariant for invariant, _ in world.found)
            tell(world, asked)
        if world.found and asked.until_found:
            break
        if seed % TOLD_EVERY == 0:
            print(f"through seed {seed}: {violations.total()} violations", file=sys.stderr)
    return {
        "seeds": seed - asked.first + 1,
        "processes": asked.processes,
        "operations": played,
        "violations": violations,
        "exercised": dict(sorted(exercised.items())),
    }


def play_one(seed, asked):
    """Play one seed as asked for; return its world."""
    if asked.processes == 1:
        return play(seed, asked.operations, log=asked.log or None)
    from . import many

    return many.play(seed, asked.processes, asked.operations)


if __name__ == "__main__":
    sys.exit(main())
