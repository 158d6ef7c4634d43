"""Play a seed in several real processes at once, on one database, and kill some of them.

The parent forks the workers from a process that has everything loaded and no connection
open. A worker writes down after each operation what it did and found, so that its death
loses nothing but the operation it was in.
"""

import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from django.db import connections

from . import clock
from .atoms import Atom
from .play import WEIGHTS, Play
from .processes import guard
from .world import World, empty, playing

PATIENCE = 120
LETTERS = "abcdefghijklmnop"
KILLS = 2
NOT_HERE = ("kill", "pass_time", "erase_resource")


class Worker:
    """Hold one worker and its followers: each time it is killed another goes on."""

    def __init__(self, letter, operations, directory):
        self.letter = letter
        self.left = operations
        self.directory = directory
        self.born = 0
        self.pid = 0
        self.notes = []

    def start(self, world, seed):
        """Fork a process that does what is left to do."""
        self.born += 1
        path = Path(self.directory) / f"{self.letter}{self.born}"
        self.notes.append(path)
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                _work(world, seed, f"{self.letter}{self.born}", self.left, path)
                status = 0
            finally:
                os._exit(status)

    def ended(self):
        """Tell whether the process is gone; one that failed is an error."""
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.pid = 0
        return not self.pid

    def kill(self):
        """End the process at once, wherever it is; tell whether it was alive."""
        if self.ended():
            return False
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0
        self.left -= len(_notes(self.notes[-1]))
        return True


def _work(world, seed, name, operations, path):
    world.series, world.alone = name, False
    world.happened.clear()
    world.found.clear()
    playing[:] = [world]
    draw = random.Random(f"{seed} {name}")
    with path.open("a", buffering=1) as notes:
        clock.run(_steps(world, draw, operations, notes))


async def _steps(world, draw, operations, notes):
    from django.db import connection

    weights = {name: weight for name, weight in WEIGHTS.items() if name not in NOT_HERE}
    game = Play(world, draw, processes=1, weights=weights)
    with connection.execute_wrapper(guard):
        for _ in range(operations):
            said = await game.step()
            note = {
                "said": said,
                "happened": world.happened,
                "found": world.found,
                "erased": sorted(world.erased),
                "shown_again": sorted(world.shown_again.elements()),
            }
            notes.write(json.dumps(note) + "\n")
        game.abandon()


def _notes(path):
    """Return what a process wrote down; a torn line is an operation it died in."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def play(seed, processes, operations):
    """Play one seed in several processes; return its world, which tells of all of them."""
    from .run import finish

    draw = random.Random(seed)
    empty()
    world = World(seed, draw)
    playing[:] = [world]
    world.make(draw)
    connections.close_all()
    with tempfile.TemporaryDirectory() as directory:
        each = -(-operations // processes)
        workers = [Worker(letter, each, directory) for letter in LETTERS[:processes]]
        for worker in workers:
            worker.start(world, seed)
        _let_live(world, seed, workers, draw)
        _gather(world, workers)
    world.alone = False
    clock.run(finish(world, Play(world, draw, processes=1)))
    connections.close_all()
    return world


def _let_live(world, seed, workers, draw):
    """Wait until all have done their part, and kill some before."""
    kills = [draw.uniform(0.02, 0.6) for _ in range(KILLS)]
    deadline = time.monotonic() + PATIENCE
    while any(not worker.ended() for worker in workers):
        if time.monotonic() > deadline:
            world.broken("errors", "The workers did not come to an end.")
            for worker in workers:
                worker.kill()
            return
        if not kills:
            time.sleep(0.01)
            continue
        time.sleep(kills.pop())
        worker = draw.choice(workers)
        if worker.kill():
            world.happened["kills"] += 1
            if worker.left > 0:
                worker.start(world, seed)


def _gather(world, workers):
    """Take together what the workers wrote down."""
    happened = Counter()
    for worker in workers:
        for path in worker.notes:
            notes = _notes(path)
            if not notes:
                continue
            last = notes[-1]
            world.operations += len(notes)
            happened.update(last["happened"])
            world.found += [tuple(each) for each in last["found"]]
            world.erased |= {Atom(*each) for each in last["erased"]}
            world.shown_again.update(Atom(*each) for each in last["shown_again"])
            world.log += [f"{path.name} {note['said']}" for note in notes]
    world.happened.update(happened)
