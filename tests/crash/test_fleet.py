"""Killing and replacing processes under load loses no prompt, and no answer without a word."""

import os
import random

import pytest

from tests.crash.fleet import killing, rolling
from tests.fleet.private import Missing

pytestmark = pytest.mark.slow

FEW = {"threads": 10, "resources": 5, "lease": 4}


def or_skip(trial, *arguments):
    try:
        return trial(*arguments, **FEW)
    except Missing as missing:
        pytest.skip(str(missing))


def test_processes_killed_at_random_instants_lose_nothing_and_are_made_good_for():
    seed = int(os.environ.get("CRASH_SEED") or random.randrange(10**6))

    trial = or_skip(killing, 60, seed)

    assert trial.wrong == [], trial.figures
    assert trial.figures["turns"] == 60
    assert trial.figures["kills"] >= 1


def test_processes_replaced_one_after_another_cut_no_turn_short():
    trial = or_skip(rolling, 100)

    assert trial.wrong == [], trial.figures
    assert trial.figures["replaced"] == 3
