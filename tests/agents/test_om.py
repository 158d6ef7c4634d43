import json
from datetime import timedelta

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from agents.models import AgentProfile, AuditEntry
from agents.services.thread import start
from memory.models import Cycle, MemoryRecord, Message, Resource, Thread
from tests.agents.om_commands import om, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


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


def test_what_would_expire_is_counted_and_kept(db):
    at = timezone.now() - timedelta(days=5000)
    AuditEntry.objects.create(actor_name="root", action="read", at=at)

    assert om("expire", "--dry-run") == "Would remove 1 audit entries.\n"
    assert json.loads(om("expire", "--dry-run", "--json"))["counts"]["audit entries"] == 1
    assert om("expire") == "Removed 1 audit entries.\n"
    assert om("expire") == "Removed nothing.\n"
