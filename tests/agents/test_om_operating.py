import io
import json
from uuid import uuid4

import pytest
from django.core.management import call_command

from agents.services.thread import start
from memory.models import Cycle, MemoryRecord, Observation, Revision
from memory.services.look import look
from tests.agents.om_commands import om, refused
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = """My dog is called Rex and he turned seven on March 1. My sister Clara moved to Lisbon \
in 2024 and works there as a nurse. On Fridays I play chess with Omar in the library. I am \
allergic to peanuts, and my doctor is Dr. Lindqvist."""


def failed(*args):
    """Run the command and return its code and what it wrote."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("om", *map(str, args), stdout=out)
    return ended.value.code, out.getvalue()


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.OFFLINE_DELAY = 0


def tell(thread, turns=4):
    for number in range(turns):
        play.say(thread, play.question(f"{number}: {FACTS}"), play.answer())


def test_all_is_observed_at_once(thread):
    tell(thread)
    said = om("observe", thread.pk)

    assert said.startswith("Revision ")
    assert "→ 0 raw tokens" in said
    assert look(thread.pk).lines
    assert om("verify").startswith("Every invariant holds (")
    again = om("observe", thread.pk)
    assert again == "There is nothing to observe: no completed step is raw.\n"


def test_chunks_are_written_and_then_shown(thread):
    tell(thread)
    om("buffer", thread.pk)
    assert Observation.objects.filter(since__isnull=True).exists()
    assert not look(thread.pk).lines

    assert "1 chunk shown" in om("activate", thread.pk)
    assert look(thread.pk).lines
    assert om("activate", thread.pk) == "Nothing is buffered.\n"


def test_lines_are_condensed_with_a_focus(thread):
    tell(thread)
    om("observe", thread.pk)
    om("reflect", thread.pk, "--focus", "Keep names.")

    assert Cycle.objects.get(kind="reflect").trigger == "manual"


def test_a_memory_is_brought_down_to_a_size_round_by_round(thread):
    tell(thread, 30)
    said = om("compact", thread.pk, "--to", 300).splitlines()

    assert len(said) > 2
    assert all("raw tokens" in line for line in said)
    assert look(thread.pk).snapshot().pending_tokens <= 300


def test_without_a_size_as_much_is_kept_as_an_activation_keeps(thread):
    tell(thread, 12)
    om("compact", thread.pk)

    view = look(thread.pk)
    assert view.snapshot().pending_tokens <= view.options.thresholds().floor


def test_a_memory_is_finalized(thread):
    tell(thread, 12)
    found = json.loads(om("finalize", thread.pk, "--json"))

    assert found["thread"] == str(thread.pk)
    assert (found["well"], found["failed"], found["after"]["raw"]) == (True, 0, 0)
    assert om("finalize", thread.pk) == "Nothing is buffered and nothing is due.\n"


def test_what_fails_says_why_and_ends_with_one(thread, profile, settings):
    settings.MEMORY_MODELS = {"observer": "nobody:nothing", "reflector": "nobody:nothing"}
    profile.model = "nobody:nothing"
    profile.save()
    tell(thread)

    code, said = failed("observe", thread.pk)
    assert code == 1
    assert "Nothing is known of a provider" in said
    code, said = failed("observe", thread.pk, "--json")
    assert (code, json.loads(said)["well"]) == (1, False)


def test_a_record_of_several_conversations_is_named_by_its_id(resource, profile):
    profile.memory_options = {**profile.memory_options, "scope": "resource"}
    profile.save()
    for thread in (start(resource, profile), start(resource, profile)):
        tell(thread, 2)
    record = look(thread.pk).record
    said = om("observe", record.pk)

    assert "→ 0 raw tokens" in said
    assert Observation.objects.values("thread").distinct().count() == 2
    [row] = json.loads(om("status", "--json"))["records"]
    assert (row["scope"], row["pending_tokens"]) == ("resource", 0)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["observe", uuid4()], "There is no memory"),
        (["compact", "THREAD", "--to", "-5"], "target_tokens = -5: must be 0 or more."),
        (["configure", "THREAD", "message_tokens"], '"message_tokens" is no option'),
        (["configure", "THREAD", "message_token=5"], "did you mean message_tokens"),
        (["configure", "THREAD", "scope=resource"], "cannot be set here"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(thread, command, sentence):
    assert sentence in refused(*[thread.pk if word == "THREAD" else word for word in command])


def test_a_conversation_without_memory_is_refused(thread):
    thread.remembers = False
    thread.save()
    assert "does not remember" in refused("activate", thread.pk)
    assert not MemoryRecord.objects.exists()


def test_options_are_changed_and_shown_with_who_set_them(thread, ada):
    said = om(
        *("configure", thread.pk, "message_tokens=700", "instruction=Names matter."),
        *("observe_attachments=false", "--author", "ada", "--reason", "Small"),
    )
    assert said == (
        'Revision 1: message_tokens = 700, instruction = "Names matter.", '
        "observe_attachments = false.\n"
    )
    made = Revision.objects.get()
    assert (made.author, made.reason) == (ada, "Small")

    [shown] = json.loads(om("status", "--options", "--json"))["records"]
    options = {row["option"]: (row["value"], row["source"]) for row in shown["options"]}
    assert options["message_tokens"] == (700, "record")
    assert options["observation_tokens"] == (200, "agent")
    assert options["thread_title"] == (False, "default")

    om("configure", thread.pk, "message_tokens=null")
    table = om("status", "--options")
    assert any(line.split() == ["message_tokens", "600", "agent"] for line in table.splitlines())


def test_options_broken_by_hand_are_named(thread):
    record = look(thread.pk).record
    MemoryRecord.objects.filter(pk=record.pk).update(config={"message_tokens": -1})

    assert "message_tokens = -1" in refused("status", "--options")
