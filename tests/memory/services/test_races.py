"""Let several processes write to one thread at once, on whichever database is in use."""

import json
import os
import subprocess
import sys

import pytest
from django.db import connection

PROCESSES, TURNS = 3, 8


@pytest.fixture
def run(request, tmp_path):
    """Return how to start a process on a database that several can open."""
    if connection.vendor == "postgresql":
        request.getfixturevalue("transactional_db")
        parts = connection.settings_dict
        address = "postgresql://{USER}@{HOST}:{PORT}/{NAME}".format(**parts)
    else:
        address = f"sqlite:///{tmp_path / 'race.sqlite3'}"
    environment = {**os.environ, "DATABASE_URL": address, "REDIS_URL": "", "SECRET_KEY": "x"}

    def start(*arguments):
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def said(process):
    """Wait for a process and return what it printed, as JSON if there is any."""
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return json.loads(out) if out.startswith("{") else None


@pytest.mark.slow
def test_processes_that_race_on_one_thread_lose_and_double_nothing(run):
    racer = ("-m", "tests.memory.services.racer")
    thread = said(run(*racer, "make"))["thread"]
    racing = [run(*racer, "live", thread, str(TURNS)) for _ in range(PROCESSES)]
    for process in racing:
        said(process)

    checked = said(run(*racer, "check", thread))
    assert checked["found"] == []
    assert checked["positions"] == list(range(1, 2 * PROCESSES * TURNS + 1))
    assert checked["revisions"] > 1
