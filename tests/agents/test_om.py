import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone
from uuid_utils.compat import uuid7

from agents.models import AgentProfile, Turn
from agents.om.progress import JsonLines, Log, Terminal
from agents.om.turns import check_turns, stored_turns
from agents.services.replay import Progress
from agents.services.thread import start
from memory.models import Cycle, MemoryRecord, Message, Resource, Thread

pytestmark = pytest.mark.django_db(transaction=True)


def om(*args):
    """Run the command and return what it wrote."""
    out = io.StringIO()
    call_command("om", *map(str, args), stdout=out)
    return out.getvalue()


def refused(*args):
    """Run the command and return the sentence it is refused with."""
    with pytest.raises(CommandError) as error:
        om(*args)
    return str(error.value)


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


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


@pytest.fixture
def two_conversations(tmp_path):
    """Return a file in LoCoMo's format."""
    path = tmp_path / "two.json"
    said = [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello"}]
    talk = {"speaker_a": "Ann", "speaker_b": "Bob", "session_1": said}
    talk["session_1_date_time"] = "1:56 pm on 8 May, 2023"
    path.write_text(json.dumps([{"sample_id": f"c{n}", "conversation": talk} for n in (1, 2)]))
    return path


# replay


def test_a_replay_stores_the_conversation_and_says_so(resource, profile, recording):
    said = om("replay", recording)

    thread = Thread.objects.get(title="Bees")
    assert f"Replaying into “Bees” of ada (conversation {thread.pk})." in said
    assert "Done: 8 messages, " in said
    assert Message.objects.filter(thread=thread).count() == 8
    assert Cycle.objects.filter(status="done").exists()
    assert om("verify").startswith("Every invariant holds (")


def test_a_finished_replay_says_so_and_does_nothing(resource, profile, recording):
    om("replay", recording)
    said = om("replay", recording)

    assert said.endswith("This recording was replayed already: all 8 messages.\n")
    assert Message.objects.count() == 8


def test_another_title_makes_another_conversation(resource, profile, recording):
    om("replay", recording)
    om("replay", recording, "--thread", "Bees again")

    assert sorted(Thread.objects.values_list("title", flat=True)) == ["Bees", "Bees again"]


def test_an_empty_conversation_can_be_named_by_its_id(resource, profile, thread, recording):
    om("replay", recording, "--thread", thread.pk)

    assert Message.objects.filter(thread=thread).count() == 8


def test_thresholds_are_kept_in_the_record(resource, profile, recording):
    om("replay", recording, "--thresholds", "messages=3000,observations=4000")

    config = {"message_tokens": 3000, "observation_tokens": 4000}
    assert MemoryRecord.objects.get().config == config
    assert not Cycle.objects.filter(kind="observe").exists()


def test_a_replay_does_not_go_on_with_other_thresholds(resource, profile, recording):
    om("replay", recording, "--thresholds", "messages=3000")

    sentence = refused("replay", recording, "--thresholds", "messages=4000")
    assert sentence.startswith("The replay into “Bees” was begun with other thresholds.")


def test_progress_can_be_read_by_programs(resource, profile, recording):
    rows = [json.loads(line) for line in om("replay", recording, "--json").splitlines()]

    assert rows[0] == {
        "event": "begin",
        "thread": str(Thread.objects.get().pk),
        "resource": "ada",
    }
    stored = [row["stored"] for row in rows if row["event"] == "progress"]
    assert stored == sorted(stored)
    assert set(stored) == set(range(1, 9))
    assert rows[-1]["event"] == "finished"
    assert (rows[-1]["stored"], rows[-1]["already"]) == (8, False)


def test_one_conversation_of_several_is_chosen_by_its_key(resource, profile, two_conversations):
    om("replay", two_conversations, "--conversation", "c2")

    assert Thread.objects.get().metadata["replay"]["key"] == "c2"


def test_a_replay_can_be_for_any_resource_with_any_agent(resource, profile, recording):
    Resource.objects.create(key="ben", name="Ben")
    AgentProfile.objects.create(slug="second", name="Second", instructions="")
    om("replay", recording, "--resource", "ben", "--agent", "second")

    thread = Thread.objects.get()
    assert (thread.resource.key, thread.agent) == ("ben", "second")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["nothing.jsonl"], "nothing.jsonl: cannot be read: No such file or directory"),
        ([__file__], "line 1: is not JSON"),
        (["TWO"], "holds 2 conversations; choose one with --conversation: c1, c2."),
        (["TWO", "--conversation", "c3"], "holds no conversation c3; it holds c1, c2."),
        (["BEES", "--resource", "eve"], "There is no resource eve; there are ada."),
        (["BEES", "--agent", "eve"], "There is no agent eve; there are tester."),
        (["BEES", "--thread", str(uuid7())], "`om list` names those there are."),
        (["BEES", "--thresholds", "words=3"], '--thresholds does not take "words=3"'),
        (["BEES", "--thresholds", "messages=many"], '--thresholds does not take "messages=many"'),
        (["BEES", "--thresholds", "messages=0"], "--thresholds messages=0 cannot be: "),
        (["BEES", "--speed", "slow"], '"slow" is no speed'),
        (["BEES", "--speed", "-1"], '"-1" is no speed'),
    ],
)
def test_a_replay_that_cannot_be_says_why(
    resource, profile, recording, two_conversations, args, sentence
):
    files = {"BEES": recording, "TWO": two_conversations}

    assert sentence in refused("replay", *(files.get(arg, arg) for arg in args))
    assert not Thread.objects.exists()


def test_a_replay_needs_a_resource(profile, recording):
    assert refused("replay", recording).startswith("There is no resource yet;")


def test_a_replay_needs_an_agent(resource, recording):
    assert refused("replay", recording).startswith("There is no agent yet;")


def test_a_replay_with_several_resources_asks_whose(resource, profile, recording):
    Resource.objects.create(key="ben", name="Ben")

    assert refused("replay", recording).endswith("with --resource: ada, ben.")


def test_a_conversation_with_messages_of_its_own_is_left_alone(
    resource, profile, thread, recording
):
    Thread.objects.filter(pk=thread.pk).update(last_position=3)

    assert "holds something else already" in refused("replay", recording, "--thread", thread.pk)


def test_a_changed_file_is_another_recording(resource, profile, recording):
    om("replay", recording)
    recording.write_text(recording.read_text().replace("bees", "wasps"))

    assert "holds something else already" in refused("replay", recording, "--thread", "Bees")


def test_a_title_that_several_conversations_have_is_refused(resource, profile, recording):
    ids = [str(start(resource, profile, title="Bees").pk) for _ in range(2)]

    sentence = refused("replay", recording, "--thread", "Bees")
    assert sentence == f"Several conversations are called “Bees”; choose one: {', '.join(ids)}."


def test_thresholds_of_an_agent_without_memory_are_refused(resource, profile, recording):
    AgentProfile.objects.update(remembers=False)

    sentence = refused("replay", recording, "--thresholds", "messages=3000")
    assert sentence == "The agent tester does not remember: it has no thresholds."


# list and status


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


# verify


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


def running_turn(thread, **fields):
    return Turn.objects.create(
        thread=thread, number=fields.pop("number", 1), status="running", lease_token=uuid7(),
        lease_expires_at=Now() + timedelta(minutes=1), first_position=1, **fields,
    )  # fmt: skip


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


# progress


class Tty(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_rewritten():
    out, now = Tty(), [0.0]
    terminal = Terminal(out, "Bees", clock=lambda: now[0])
    for seconds, stored in ((0, 1), (0.05, 2), (0.2, 3), (0.21, 4)):
        now[0] = seconds
        terminal(Progress(stored, 4))
    terminal.end()

    assert out.getvalue().split("\r\033[K") == [
        "",
        "Bees: 1 of 4 messages, 0 cycles",
        "Bees: 3 of 4 messages, 0 cycles",
        "Bees: 4 of 4 messages, 0 cycles",
        "",
    ]


def test_a_log_gets_a_line_now_and_then():
    out, now = io.StringIO(), [0.0]
    log = Log(out, "Bees", clock=lambda: now[0])
    for seconds, stored in ((1, 1), (5, 2), (6, 3), (11, 4)):
        now[0] = seconds
        log(Progress(stored, 4, cycles=1, waiting_for="a cycle to end or lapse"))

    assert out.getvalue().splitlines() == [
        "Bees: 2 of 4 messages, 1 cycles, waiting for a cycle to end or lapse",
        "Bees: 4 of 4 messages, 1 cycles, waiting for a cycle to end or lapse",
    ]


def test_a_program_gets_every_change():
    out = io.StringIO()
    JsonLines(out)(Progress(1, 4, cycles=2))

    assert json.loads(out.getvalue()) == {
        "event": "progress", "stored": 1, "total": 4, "cycles": 2, "waiting_for": "",
        "finished": False, "already": False,
    }  # fmt: skip
