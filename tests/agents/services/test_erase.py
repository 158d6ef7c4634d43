from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agents.models import RequestSnapshot, Turn
from agents.om.turns import check_turns, stored_turns
from agents.services.attach import take
from agents.services.begin import begin
from agents.services.erase import (
    erase_line,
    erase_messages,
    erase_person,
    erase_resource,
    erase_thread,
)
from agents.services.fork import fork
from agents.services.send import send
from memory.models import Blob, Media, Message, Resource, Revision, Thread
from memory.models.blob import digest
from memory.services.change import Refused
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.note import note
from tests.memory.services.editing import beekeeping, texts, wrong
from tests.memory.services.test_erase import stored

from .test_fork import turns  # noqa: F401


@pytest.fixture
def world(resource):
    return beekeeping(resource)


@pytest.fixture
def done(world, turns):  # noqa: F811
    """Let all turns be done, each with a request that held all of memory."""
    Turn.objects.filter(status="waiting").delete()
    Turn.objects.filter(status="running").update(
        status="done", last_position=10, lease_token=None, finished_at="2026-03-02T10:00Z"
    )
    Blob.objects.keep(["The agent's instructions", "Memory of bees"])
    Blob.objects.filter(text="The agent's instructions").update(kept_at="2026-03-01T10:00Z")
    for turn in turns:
        RequestSnapshot.objects.create(
            turn=turn,
            step=1,
            revision=2,
            blocks=[
                {"kind": "memory", "source": "", "tokens": 3, "hash": digest("Memory of bees")}
            ],
            total=3,
            hash="",
        )
    return turns


def held(text):
    """Return where a text is still stored, turns included."""
    prompts = Turn.objects.values_list("prompt", "draft_text", "error")
    return stored(text) + [row for row in prompts if text in str(row)]


def test_prompts_drafts_and_requests_go_with_the_messages(world, done):
    done.filter(number=2).update(error="bees", draft_text="bees")

    report = erase_messages(world.thread.pk, 3, 4)

    assert held("bees") == []
    assert done.get(number=2).prompt == "(erased)"
    assert done.get(number=1).prompt == "Tell me about time."
    assert Blob.objects.get().text == "The agent's instructions"
    assert (report.counts["prompts"], report.counts["requests"]) == (1, 5)
    blocks = RequestSnapshot.objects.first().blocks
    assert blocks == [{"kind": "memory", "source": "", "tokens": 3, "hash": ""}]
    assert list(check_turns(stored_turns())) == []
    assert wrong() == []


def test_the_prompt_of_a_turn_stays_when_only_its_answer_goes(world, done):
    erase_messages(world.thread.pk, 4, 4)

    assert done.get(number=2).prompt == "Tell me about bees."


def test_copied_prompts_go_too(world, done):
    fork(world.thread.pk, 6)

    erase_messages(world.thread.pk, 3, 4)
    assert held("bees") == []


def test_a_line_goes_with_the_requests_that_held_it(world, done):
    erase_line(world.a1.pk)

    assert not Blob.objects.filter(text="Memory of bees").exists()
    assert done.get(number=2).prompt == "Tell me about bees."


@pytest.mark.parametrize("erase", [erase_messages, erase_thread])
def test_nothing_is_erased_while_an_answer_is_written(world, turns, erase):  # noqa: F811
    with pytest.raises(Refused, match="Stop it first"):
        erase(world.thread.pk)


@pytest.mark.parametrize("erase", [erase_messages, erase_thread])
def test_nothing_is_erased_while_an_answer_is_written_over_a_copy(world, done, erase):
    """Who writes it has the text at hand, and would send it with the next step."""
    child = fork(world.thread.pk, 6)
    done.filter(thread=world.thread, number=2).update(
        status="running", lease_token=uuid4(), lease_expires_at=timezone.now(), finished_at=None
    )

    with pytest.raises(Refused, match=f"in “{world.thread}”, which has copies"):
        erase(child.pk)
    assert held("bees") != []
    erase(child.pk, copies=False)


def test_a_thread_goes_with_its_turns_and_requests(world, done):
    report = erase_thread(world.thread.pk)

    assert not Turn.objects.exists()
    assert (report.counts["turns"], report.counts["requests"]) == (5, 5)
    assert [blob.text for blob in Blob.objects.all()] == ["The agent's instructions"]
    assert held("bees") == []


@pytest.mark.parametrize("erase", [erase_messages, erase_thread])
def test_the_texts_of_a_request_that_was_sent_again_otherwise_go_too(world, done, erase):
    Blob.objects.keep(["Memory of bees, which was too long"])

    erase(world.thread.pk)
    assert held("bees") == []


def test_a_resource_goes_with_all_of_it(world, done):
    fork(world.thread.pk, 6)

    report = erase_resource(world.thread.resource)

    assert not Resource.objects.exists()
    assert not Thread.objects.exists()
    assert report.counts["turns"] == 8
    assert held("bees") == []


def test_a_person_alone_goes_with_their_resource(world, done, ada):
    forget(world.a0.pk, author=ada)
    erase_person(ada)

    assert not Resource.objects.exists()
    ada.refresh_from_db()


def test_of_a_person_among_others_only_what_they_said_goes(world, done, ada, ben):
    world.thread.resource.members.add(ben)
    forget(world.a0.pk, author=ada)
    done.exclude(number=2).update(author=ben)

    report = erase_person(ada)

    assert held("bees") == []
    assert texts(world.record) == ["Ada asks about honey"]
    assert list(world.thread.resource.members.all()) == [ben]
    assert not Turn.objects.filter(author=ada).exists()
    assert not Revision.objects.filter(author=ada).exists()
    assert report.counts["messages"] == 2
    assert wrong() == []


def test_what_a_person_said_goes_from_a_resource_they_left_too(world, done, ada, ben):
    world.thread.resource.members.set([ben])
    done.exclude(number=2).update(author=ben)

    erase_person(ada)
    assert held("bees") == []
    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert done.get(number=1).prompt == "Tell me about time."


def test_a_persons_notes_and_reasons_go_and_those_of_others_stay(world, done, ada, ben):
    world.thread.resource.members.set([ada, ben])
    done.update(author=ben)
    first = note(world.record.pk, "Ada is allergic to wasps", author=ada, reason="As I told you")
    edit(first.pk, "Ada is very allergic to wasps", author=ben)
    note(world.record.pk, "Ben pays for the hives", author=ben, reason="He said so")

    erase_person(ada)
    assert held("allergic") == held("As I told you") == []
    assert "Ben pays for the hives" in texts(world.record)
    assert Revision.objects.filter(author=ben, reason="He said so").exists()
    assert wrong() == []


def test_a_note_goes_from_a_resource_where_the_person_said_nothing(world, done, ada, ben):
    world.thread.resource.members.set([ben])
    done.update(author=ben)
    note(world.record.pk, "Ada is allergic to wasps", author=ada)

    erase_person(ada)
    assert held("allergic") == []


def test_a_prompt_of_the_person_that_waits_is_taken_back_with_its_file(world, done, ada, ben):
    world.thread.resource.members.set([ada, ben])
    file = take(SimpleUploadedFile("bees.txt", b"All about bees"))
    send(world.thread.pk, "More of bees", author=ada, attachments=[file])

    erase_person(ada)
    assert begin(world.thread.pk) is None
    assert not Media.objects.filter(hash=file["hash"]).exists()
    assert Turn.objects.latest("number").status == "withdrawn"
    assert not Message.objects.filter(text__contains="(erased)", position__gt=10).exists()


def test_a_person_is_not_erased_while_they_are_answered(world, turns, ada, ben):  # noqa: F811
    world.thread.resource.members.set([ada, ben])
    Turn.objects.filter(status="running").update(author=ada)

    with pytest.raises(Refused, match="Stop it first"):
        erase_person(ada)
    assert ada in world.thread.resource.members.all()
