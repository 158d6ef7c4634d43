import json

import pytest
from django.utils import timezone

from agents.models import Turn
from agents.services.thread import start
from memory.models import Cycle, MemoryRecord, Message
from tests.agents.om_commands import om, running_turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


def test_nothing_is_said_to_be_nothing(db):
    assert om("list") == "There are no conversations yet.\n"
    assert om("status") == "Nothing is remembered yet: there are no records.\n"
    assert json.loads(om("list", "--json")) == {"threads": []}
    assert json.loads(om("status", "--json")) == {"records": []}


def test_the_list_names_every_conversation(resource, profile, recording):
    om("replay", recording)
    other = start(resource, profile, title="Waiting")
    Turn.objects.create(thread=other, number=1, prompt="Hello")

    rows = {row["title"]: row for row in json.loads(om("list", "--json"))["threads"]}
    tokens = sum(Message.objects.values_list("tokens", flat=True))
    assert (rows["Bees"]["messages"], rows["Bees"]["tokens"]) == (8, tokens)
    assert (rows["Bees"]["resource"], rows["Bees"]["state"]) == ("ada", "idle")
    assert (rows["Waiting"]["messages"], rows["Waiting"]["state"]) == (0, "1 waiting")


def test_the_list_can_be_read_by_people(resource, profile, recording):
    om("replay", recording)

    headings, row = om("list").splitlines()
    assert headings.split() == ["id", "resource", "title", "messages", "tokens", "state"]
    assert row.split()[1:4] == ["ada", "Bees", "8"]


def test_a_conversation_that_is_being_answered_is_running(resource, profile):
    thread = start(resource, profile)
    running_turn(thread)

    assert json.loads(om("list", "--json"))["threads"][0]["state"] == "running"


def test_the_status_shows_gauges_and_cycles(resource, profile, recording):
    om("replay", recording)
    record = MemoryRecord.objects.get()
    failed = Cycle.objects.filter(kind="buffer").first()
    Cycle.objects.create(
        record=record, thread=failed.thread, lane=failed.lane, kind="buffer", status="failed",
        epoch=0, lease_expires_at=timezone.now(), finished_at=timezone.now(),
    )  # fmt: skip

    row = json.loads(om("status", "--json"))["records"][0]
    covered = record.cursors.get().observed_through
    raw = Message.objects.filter(position__gt=covered).values_list("tokens", flat=True)
    assert row["pending_tokens"] == sum(raw)
    assert (row["pending_threshold"], row["observation_threshold"]) == (600, 200)
    assert (row["title"], row["revision"]) == ("Bees", record.revision)
    assert (row["running"], row["failed"]) == (0, 1)
    assert f"{sum(raw):,} / 600" in om("status")


def test_the_status_goes_on_when_options_are_wrong(resource, profile, recording):
    om("replay", recording)
    MemoryRecord.objects.update(config={"message_tokens": "many"})

    assert json.loads(om("status", "--json"))["records"][0]["pending_threshold"] == 600
