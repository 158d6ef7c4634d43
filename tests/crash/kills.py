"""Replay a recording, kill the process at ten moments drawn from a seed, and go on each time.

What a kill hits is not guessed: the process is stopped first (SIGSTOP), then looked at from
outside, and killed (SIGKILL) only when it stands where it should; else it goes on (SIGCONT).

- inside a turn, a cycle: the row says running, and nothing is being written that could end it
  although nobody can read it yet, so that it still does after the death;
- between two writes: the process is inside a write transaction. SQLite tells by the lock of
  the write-ahead log, PostgreSQL by the backend's transaction id, which it has only once it
  has written, while it waits for its client.

By hand: ``python -m tests.crash.kills FILE --conversation KEY --seed 7``.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from memory.messages import dump
from memory.recordings import read
from tests.crash.database import Locked, decoded, own_database
from tests.keyboard import hear_ctrl_c

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["cycle"] * 3 + ["turn"] * 3 + ["write"] + ["any"] * 3
TABLES = {"cycle": "memory_cycle", "turn": "agents_turn"}
PATIENCE = 120
GLANCE = 0.001
WORLD = """
from agents.models import AgentProfile
from memory.models import Resource
Resource.objects.create(key="crash", name="Crash")
AgentProfile.objects.create(slug="crash", name="Crash", instructions="")
"""


class Finished(Exception):
    """Say that the replay ended before it could be killed."""


@dataclass(frozen=True)
class Kill:
    """Hold when to kill: what is to be hit, once so many messages are stored, after a delay."""

    kind: str
    stored: int
    delay: float


@dataclass
class Trial:
    """Replay one recording in processes that get killed, on a database of its own."""

    database: object
    file: Path
    key: str
    thresholds: str
    lease: str = "1"
    delay: str = "0.05"
    hits: list = field(default_factory=list)

    def prepare(self):
        """Make the tables, a resource and an agent."""
        for args in (["migrate", "-v0"], ["shell", "-v0", "-c", WORLD]):
            ended = self.manage(*args)
            if ended.returncode:
                raise RuntimeError(f"manage.py {args[0]} failed:\n{ended.stderr}")

    def environment(self):
        return {
            **os.environ,
            "DATABASE_URL": self.database.url,
            "OM_LEASE_SECONDS": self.lease,
            "OM_OFFLINE_DELAY": self.delay,
            "REDIS_URL": "",
            "OM_MODEL": "offline",
        }

    def manage(self, *args):
        """Run a command of manage.py to its end."""
        return subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=ROOT, env=self.environment(), capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def replaying(self):
        """Return the arguments of the replay."""
        return [
            "om", "replay", str(self.file), "--conversation", self.key, "--resource", "crash",
            "--thresholds", self.thresholds,
        ]  # fmt: skip

    def start(self):
        """Begin the replay, or go on with it, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "manage.py", *self.replaying()],
            cwd=ROOT, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, preexec_fn=hear_ctrl_c,
        )  # fmt: skip

    def stored(self):
        """Return how many messages the database holds."""
        return self.database.rows("SELECT count(*) FROM memory_message")[0][0]

    def running(self, table):
        """Tell whether a turn or a cycle is running."""
        return bool(self.database.rows(f"SELECT 1 FROM {table} WHERE status = 'running'"))

    def kill(self, planned):
        """Run until a moment comes, and kill there. Raises Finished."""
        child = self.start()
        try:
            self._stop(child, lambda: self.stored() > planned.stored)
            child.send_signal(signal.SIGCONT)
            time.sleep(planned.delay)
            self._stop(child, lambda: self._stands(child, planned.kind))
            write = self.database.writing(child.pid)
        finally:
            child.kill()
            child.communicate()
        self.hits.append(self._evidence(planned.kind, write))
        return self.hits[-1]

    def _stop(self, child, stands):
        """Stop the process at a moment at which a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if child.poll() is not None:
                raise Finished(child.stdout.read())
            if stands():
                child.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                if child.poll() is None and self._still(stands):
                    return
                child.send_signal(signal.SIGCONT)
            time.sleep(GLANCE)
        raise TimeoutError("The moment to kill at never came.")

    def _still(self, stands):
        """Tell whether a condition holds while the process is stopped.

        One that was stopped while it holds the whole database for itself lets nobody look.
        """
        try:
            return stands()
        except Locked:
            return False

    def _stands(self, child, kind):
        if kind == "any":
            return True
        writes = self.database.writing(child.pid)
        return writes if kind == "write" else not writes and self.running(TABLES[kind])

    def _evidence(self, kind, write):
        """Say what the process died in the middle of: its rows stand as it left them.

        They are read once it is dead, since it may have been stopped anywhere, with the whole
        database locked too.
        """
        return {
            "kind": kind,
            "stored": self.stored(),
            **{kind: self.running(table) for kind, table in TABLES.items()},
            "write": write,
        }

    def verify(self):
        """Return what `om verify` says, and whether all is well."""
        ended = self.manage("om", "verify")
        return ended.returncode == 0, ended.stdout + ended.stderr

    def differences(self):
        """Return how the stored messages differ from those of the file; empty when they do not."""
        recording = next(r for r in read(self.file) if r.key == self.key)
        wanted = [dump(recorded.message) for recorded in recording.messages]
        rows = self.database.rows("SELECT payload FROM memory_message ORDER BY position")
        found = [decoded(payload) for (payload,) in rows]
        if len(found) != len(wanted):
            return [f"{len(found)} messages are stored, {len(wanted)} are in the file"]
        pairs = enumerate(zip(found, wanted, strict=True), 1)
        return [f"message {n} is not the file's" for n, (a, b) in pairs if a != b]

    def done_cycles(self):
        """Return how many cycles brought their result."""
        return self.database.rows("SELECT count(*) FROM memory_cycle WHERE status = 'done'")[0][0]


def plan(seed, messages):
    """Return ten kills in the order they happen, spread over the first 85 % of a recording."""
    draw = random.Random(seed)
    kinds = draw.sample(KINDS, len(KINDS))
    moments = sorted(draw.randrange(messages * 85 // 100) for _ in kinds)
    return [
        Kill(kind, stored, draw.uniform(0, 0.3) if kind == "any" else 0)
        for kind, stored in zip(kinds, moments, strict=True)
    ]


def run(trial, seed, *, verify_each=False, say=print):
    """Kill a replay ten times and let it end; return what is wrong then.

    ``verify_each`` also looks at what each death left.
    """
    recording = next(r for r in read(trial.file) if r.key == trial.key)
    say(f"{trial.key} on {trial.database.name}, seed {seed}")
    trial.prepare()
    for number, planned in enumerate(plan(seed, len(recording.messages)), 1):
        hit = trial.kill(planned)
        say(f"kill {number}: {hit}")
        clean, report = trial.verify() if verify_each else (True, "")
        if not clean:
            return [f"after kill {number}: {report}"]
    before = trial.done_cycles()
    ended = trial.manage(*trial.replaying())
    clean, report = trial.verify()
    say(ended.stdout + ended.stderr + report)
    wrong = trial.differences()
    wrong += [] if ended.returncode == 0 else [f"the last run ended with {ended.returncode}"]
    wrong += [] if clean else [report]
    wrong += [] if trial.done_cycles() > before else ["no cycle was run after the last kill"]
    return wrong


def main():
    """Run one trial by hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--conversation")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--thresholds", default="messages=3000,observations=4000")
    parser.add_argument("--verify-each", action="store_true", help="verify after each death too")
    options = parser.parse_args()
    key = options.conversation or read(options.file)[0].key
    with tempfile.TemporaryDirectory() as directory, own_database(directory) as database:
        trial = Trial(database, options.file, key, options.thresholds)
        wrong = run(trial, options.seed, verify_each=options.verify_each)
    print("\n".join(wrong) or "clean")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
