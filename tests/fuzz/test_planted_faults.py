"""The fuzz notices when a guard of memory is missing, and plays the same seed the same way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
WITHIN = 60
FIRST = {
    "read_the_cursor_after_the_rows": 53,
    "skip_the_compare_and_swap": 33,
    "drop_the_epoch_check": 7,
    "drop_the_owner_check": 4,
}
"""Where a search begins that would be long: with seeds that were seen to show these faults."""


def fuzz(*arguments):
    """Run the fuzz in a process of its own; return its status, its summary and what it said."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    *said, summary = ended.stdout.splitlines() or [ended.stderr]
    return ended.returncode, json.loads(summary), said


def found(summary):
    return {name: count for name, count in summary["violations"].items() if count}


@pytest.mark.slow
def test_a_seed_is_played_the_same_way_each_time_and_violates_nothing():
    status, summary, log = fuzz("--seeds", 1, "--first", 7, "--operations", 60, "--log")

    assert (status, found(summary)) == (0, {}), "\n".join(log)
    assert log == fuzz("--seeds", 1, "--first", 7, "--operations", 60, "--log")[2]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault):
    first = FIRST.get(fault, 1)
    status, summary, _ = fuzz(
        "--fault", fault, "--first", first, "--seeds", WITHIN, "--until-found"
    )

    assert status == 1
    assert found(summary)


@pytest.mark.slow
def test_several_processes_that_get_killed_violate_nothing():
    status, summary, log = fuzz("--seeds", 3, "--processes", 3)

    assert (status, found(summary)) == (0, {}), "\n".join(log)
    assert summary["exercised"]["kills"]
