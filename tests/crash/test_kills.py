"""Kill -9 at any moment loses no message, doubles none, and memory goes on."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest

from memory.recordings import read
from tests.crash.database import own_database
from tests.crash.kills import KINDS, ROOT, Trial, plan, run

pytestmark = pytest.mark.slow

RECORDING = ROOT / "agents" / "demo" / "kitchen.jsonl"
SMALL = "messages=600,observations=300"


@pytest.fixture
def trial(tmp_path):
    with own_database(tmp_path) as database:
        yield Trial(database, RECORDING, "kitchen", SMALL)


def test_a_replay_killed_ten_times_is_whole_and_clean(trial):
    seed = int(os.environ.get("CRASH_SEED") or random.randrange(10**6))

    assert run(trial, seed) == []

    hit = Counter(kind for hit in trial.hits for kind in ("cycle", "turn", "write") if hit[kind])
    assert len(trial.hits) == 10
    assert hit["cycle"] >= 3
    assert hit["turn"] >= 3
    assert hit["write"] >= 1


def test_ctrl_c_ends_a_replay_cleanly_and_it_goes_on(trial):
    trial.prepare()
    child = trial.start()
    while child.poll() is None and trial.stored() < 20:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=60)

    assert child.returncode == 130
    assert "Run the same command again to go on." in said
    assert not trial.running("agents_turn")
    ended = trial.manage(*trial.replaying())
    assert ended.returncode == 0
    assert trial.differences() == []
    assert trial.verify()[0]


def test_a_server_beside_a_replay_does_no_harm(trial):
    trial.prepare()
    server = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(free_port())],
        cwd=ROOT, env=trial.environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert "is ready" in server.stdout.readline()
        ended = trial.manage(*trial.replaying())
        clean, report = trial.verify()
    finally:
        server.terminate()
        server.communicate(timeout=60)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert clean, report
    assert trial.differences() == []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_plan_is_drawn_from_its_seed():
    messages = len(read(RECORDING)[0].messages)

    assert plan(7, messages) == plan(7, messages)
    assert plan(7, messages) != plan(8, messages)
    assert sorted(kill.kind for kill in plan(7, messages)) == sorted(KINDS)
