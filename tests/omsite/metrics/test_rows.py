from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone
from prometheus_client import CollectorRegistry

from agents.models import Turn
from memory.models import Cycle, MemoryRecord
from omsite.metrics import rows
from omsite.metrics.rows import Rows

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def read():
    """Return what reads a figure anew."""
    registry = CollectorRegistry()
    registry.register(Rows())
    return lambda name, **labels: registry.get_sample_value(f"omsite_{name}", labels)


def turn(thread, number, status, **fields):
    return Turn.objects.create(thread=thread, number=number, prompt="Hi", status=status, **fields)


def cycle(thread, lane, **fields):
    record = MemoryRecord.objects.get_or_create(resource=thread.resource, thread=thread)[0]
    now = timezone.now()
    given = {"lease_expires_at": now + HOUR, "status": "running", "kind": "buffer", "epoch": 0}
    if fields.get("status", "running") != "running":
        given["finished_at"] = now
    return Cycle.objects.create(record=record, thread=thread, lane=lane, **given | fields)


def test_an_idle_server_has_nothing_open_and_nothing_waiting(read):
    assert read("turns_open", status="waiting") == 0
    assert read("cycles_open", kind="reflect", status="running") == 0
    assert read("queue_age_seconds", queue="turns") == 0
    assert read("queue_age_seconds", queue="cycles") == 0
    assert read("database_up") == 1


def test_the_oldest_prompt_that_waits_is_the_age_of_the_queue(thread, read):
    now = timezone.now()
    turn(thread, 1, "done", created_at=now - 3 * HOUR)
    turn(thread, 2, "waiting", created_at=now - HOUR)
    turn(thread, 3, "waiting", created_at=now)
    assert read("turns_open", status="waiting") == 2
    assert read("queue_age_seconds", queue="turns") == pytest.approx(3600, abs=60)


def test_a_turn_whose_process_died_is_told_apart(thread, read):
    lease = {"lease_token": "0190b1de-0000-7000-8000-000000000000"}
    turn(thread, 1, "running", lease_expires_at=timezone.now() - HOUR, **lease)
    assert read("turns_open", status="running") == 0
    assert read("turns_open", status="lapsed") == 1


def test_cycles_are_counted_by_kind_and_what_they_wait_for(thread, read):
    now = timezone.now()
    cycle(thread, "one")
    cycle(thread, "two", lease_expires_at=now - HOUR)
    cycle(thread, "three", status="failed", next_attempt_at=now + HOUR)
    cycle(thread, "four", status="failed", next_attempt_at=now - HOUR, kind="reflect")
    cycle(thread, "five", status="failed", next_attempt_at=None)
    cycle(thread, "six", status="done")
    cycle(thread, "seven", status="cancelled", next_attempt_at=now + HOUR, kind="observe")
    for status in ("running", "lapsed", "resting"):
        assert read("cycles_open", kind="buffer", status=status) == 1, status
    assert read("cycles_open", kind="observe", status="resting") == 1
    assert read("cycles_open", kind="reflect", status="overdue") == 1
    assert read("cycles_open", kind="buffer", status="overdue") == 0
    assert read("queue_age_seconds", queue="cycles") == pytest.approx(3600, abs=60)


def test_a_failure_that_was_made_good_is_not_overdue(thread, read):
    now = timezone.now()
    cycle(thread, "one", status="failed", next_attempt_at=now - HOUR, started_at=now - 2 * HOUR)
    cycle(thread, "one", status="done", started_at=now)
    assert read("cycles_open", kind="buffer", status="overdue") == 0


def test_the_figures_cost_five_statements(thread, read, django_assert_num_queries):
    cycle(thread, "one")
    with django_assert_num_queries(5):
        read("database_up")


def test_while_the_database_is_away_that_is_what_is_told(caplog):
    def away():
        raise OperationalError("postgresql://me:hunter2@there refused")

    registry = CollectorRegistry()
    registry.register(Rows(away))
    assert registry.get_sample_value("omsite_database_up") == 0
    assert registry.get_sample_value("omsite_turns_open", {"status": "waiting"}) is None
    assert "OperationalError" in caplog.text
    assert "hunter2" not in caplog.text


def test_making_a_registry_asks_nothing(django_assert_num_queries):
    with django_assert_num_queries(0):
        CollectorRegistry().register(rows.Rows())
