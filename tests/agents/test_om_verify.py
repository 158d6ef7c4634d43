import io
import json

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from agents.models import Turn
from agents.om.turns import check_turns, stored_turns
from agents.services.thread import start
from memory.models import MemoryRecord, Message, Thread
from tests.agents.om_commands import om, refused, running_turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


def failing(*args):
    """Run a command that exits with 1 and return what it wrote."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("om", *map(str, args), stdout=out)
    assert ended.value.code == 1
    return out.getvalue()


def test_verify_names_each_violation_and_fails(resource, profile, recording):
    om("replay", recording)
    Message.objects.filter(position=8).update(text="Something else")

    first, summary = failing("verify").splitlines()
    assert first.startswith("messages.text: Thread ")
    assert summary.startswith("Found 1 violation (1 thread, 1 record, 8 messages,")


def test_verify_writes_one_document_for_programs(resource, profile, recording):
    om("replay", recording)
    assert json.loads(om("verify", "--json"))["clean"]

    MemoryRecord.objects.update(generation=99)
    report = json.loads(failing("verify", "--json"))
    violation = report["violations"][0]
    assert violation["invariant"] == "record.generation"
    assert violation["rows"] == {"record": str(MemoryRecord.objects.get().pk)}
    assert report["checked"]["turns"] == 4


def test_verify_can_be_narrowed(resource, profile, recording):
    om("replay", recording)
    other = start(resource, profile)
    Thread.objects.filter(pk=other.pk).update(remembers=False)
    MemoryRecord.objects.create(resource=resource, thread=other)

    record = MemoryRecord.objects.exclude(thread=other).get()
    assert om("verify", "--record", record.pk).startswith("Every invariant holds (1 thread, 1 rec")
    assert om("verify", "--thread", record.thread_id).startswith("Every invariant holds (1 thread")
    assert "record.remembers" in failing("verify", "--thread", other.pk)


@pytest.mark.parametrize("option", ["--record", "--thread"])
def test_verify_of_what_is_not_there_is_refused(db, option):
    assert refused("verify", option, uuid7()).endswith(
        "`om list` and `om status` name those there are."
    )


@pytest.fixture
def turn(resource, profile, tmp_path):
    """Return the first of two finished turns."""
    path = tmp_path / "short.jsonl"
    row = '{{"at": "2025-06-01T08:00:00Z", "{}": "Hello"}}\n'
    path.write_text(2 * (row.format("user") + row.format("assistant")))
    om("replay", path)
    return Turn.objects.get(number=1)


@pytest.mark.parametrize(
    ("invariant", "changes"),
    [
        ("turns.status", {"status": "asleep"}),
        ("turns.finished", {"finished_at": None}),
        ("turns.range", {"first_position": None}),
        ("turns.range", {"first_position": 0}),
        ("turns.range", {"first_position": 99}),
        ("turns.range", {"last_position": 99}),
        ("turns.range", {"status": "withdrawn"}),
    ],
)
def test_a_planted_violation_of_a_turn_is_found(turn, invariant, changes):
    Turn.objects.filter(pk=turn.pk).update(**changes)

    assert f"{invariant}: Turn 1 of thread {turn.thread_id} " in failing("verify")


def test_turns_that_share_a_message_are_found(turn):
    Turn.objects.filter(pk=turn.pk).update(last_position=3)

    assert f"turns.overlap: Turn 2 of thread {turn.thread_id} begins at 3, " in failing("verify")


@pytest.mark.parametrize(
    ("invariant", "change"),
    [
        ("turns.number", {"number": 2}),
        ("turns.running", {"status": "running"}),
        ("turns.lease", {"status": "running", "lease_token": None}),
    ],
)
def test_what_the_database_refuses_of_turns_would_be_found_too(turn, invariant, change):
    if invariant != "turns.running":
        with pytest.raises(IntegrityError), transaction.atomic():
            Turn.objects.filter(pk=turn.pk).update(**change)
    rows = [{**row, **(change if row["number"] < 3 else {})} for row in stored_turns()]

    assert invariant in {violation.invariant for violation in check_turns(rows)}


def test_two_running_turns_of_a_thread_are_refused(resource, profile):
    thread = start(resource, profile)
    running_turn(thread)

    with pytest.raises(IntegrityError), transaction.atomic():
        running_turn(thread, number=2)
