"""Who visits the pages, and what the commands are given."""

import json

import pytest

from tests.agents.clients import client_of


@pytest.fixture
def signed_in(ada):
    return client_of(ada)


@pytest.fixture
def stranger(cleo):
    return client_of(cleo)


@pytest.fixture
def recording(tmp_path):
    """Return a file with a short conversation."""
    path = tmp_path / "bees.jsonl"
    long = " I keep bees on the roof, and the hive on the left has a new queen since spring." * 3
    rows = [{"title": "Bees"}]
    for n in range(4):
        at = f"2025-06-01T08:{n:02}:00+00:00"
        rows += [{"at": at, "user": f"{n}:{long}"}, {"at": at, "assistant": f"Yes, {n}.{long}"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path
