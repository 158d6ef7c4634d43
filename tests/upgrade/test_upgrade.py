"""The database of an earlier state becomes one of this state, while people go on writing."""

import pytest
from django.db.migrations.loader import MigrationLoader

from tests.crash.database import decoded, own_database
from tests.upgrade.previous import Previous
from tests.upgrade.writer import BOUND, Writer, fill

pytestmark = pytest.mark.slow

OURS = ("memory", "agents", "lab")
MANY = {"PostgreSQL": 20_000, "SQLite": 2_000}
MESSAGES = "SELECT position, payload, text FROM memory_message ORDER BY id"
WAITING = "SELECT count(*) FROM agents_turn WHERE status = 'waiting'"


@pytest.fixture
def previous(tmp_path):
    with own_database(tmp_path) as database:
        found = Previous(database, tmp_path)
        found.load()
        yield found


def said(previous):
    rows = previous.database.rows(MESSAGES)
    return [(position, decoded(payload), text) for position, payload, text in rows]


def missing(previous):
    """Return our migrations that the earlier state did not have, in order."""
    applied = dict(previous.applied())
    graph = MigrationLoader(None, ignore_no_migrations=True).graph
    plan = [key for leaf in graph.leaf_nodes() for key in graph.forwards_plan(leaf)]
    ours = [(app, name) for app, name in dict.fromkeys(plan) if app in OURS]
    return [f"{app}.{name}" for app, name in ours if name > applied.get(app, "")]


def test_the_database_of_an_earlier_state_is_upgraded_and_sound(previous):
    before = said(previous)
    assert previous.manage("migrate", "-v0") == (0, "")

    code, report = previous.manage("om", "verify")
    assert code == 0, report
    assert report.startswith("Every invariant holds (4 threads, 3 records, 318 messages"), report
    assert said(previous) == before
    assert previous.database.rows(WAITING) == [(1,)]


def test_a_writer_goes_on_appending_while_each_migration_runs(previous):
    fill(previous.database, MANY[previous.database.name])
    steps = missing(previous)
    assert "memory.0009_count_lines_as_sent" in steps
    with previous.migrating() as migrate, Writer(previous.database) as writer:
        for step in steps:
            writer.appends()
            migrate(step)
            writer.appends()

    assert writer.longest < BOUND[previous.database.name]
    assert len(writer.positions) == len(set(writer.positions))
    code, report = previous.manage("om", "verify")
    assert code == 0, report
