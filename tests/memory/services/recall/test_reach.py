import uuid

import pytest

from memory.models import Message, Resource, Thread
from memory.services.recall import Refused
from tests.memory.services.play import question, say

from .play import ask, shown

pytestmark = pytest.mark.django_db

UNKNOWN = "There is no such conversation among those that can be recalled."


@pytest.fixture
def garden(another):
    garden = another()
    say(garden, question("Plant lavender."))
    return garden


@pytest.fixture
def talked(thread):
    say(thread, question("How are the bees?"), question("And the queen?"))
    return thread


def test_with_leave_another_conversation_of_the_resource_is_read(talked, garden, everywhere):
    told = ask(talked, thread=str(garden.pk))
    assert told.startswith("Messages of “Garden”.")
    assert told.endswith("Plant lavender.")
    assert ask(talked, thread=str(garden.pk), cursor=1, part=1).endswith("Plant lavender.")


@pytest.mark.parametrize("name", ["current", "", " current "])
def test_the_current_conversation_has_a_name(talked, everywhere, name):
    assert shown(ask(talked, thread=name)) == [1, 2]


def test_the_current_conversation_can_be_named_by_its_id_in_any_scope(talked):
    assert ask(talked, thread=str(talked.pk)) == ask(talked)


def test_nothing_said_about_recalling_means_this_conversation_only(talked, garden):
    with pytest.raises(Refused, match="Leave thread out"):
        ask(talked, thread=str(garden.pk))
    assert ask(talked, scope="resource", thread=str(garden.pk)).endswith("lavender.")


def test_a_caller_can_only_narrow_what_the_options_allow(talked, garden, allow):
    allow({"scope": "thread"})
    with pytest.raises(Refused, match="Only this conversation"):
        ask(talked, scope="resource", thread=str(garden.pk))
    allow(True)
    with pytest.raises(Refused, match="Only this conversation"):
        ask(talked, scope="thread", thread=str(garden.pk))


@pytest.mark.parametrize("mode", ["messages", "threads", "words"])
def test_switched_off_every_mode_is_refused(talked, allow, mode):
    allow(False)
    with pytest.raises(Refused, match="Recall is switched off for this conversation"):
        ask(talked, mode=mode, query="bees", scope="resource")


def test_a_foreign_thread_is_as_unknown_as_one_that_is_not(talked, everywhere):
    other = Resource.objects.create(key="ben", name="Ben")
    foreign = Thread.objects.create(resource=other, agent="tester", title="Secret")
    say(foreign, question("Secret"))
    refusals = set()
    for name in (str(foreign.pk), str(uuid.uuid4()), "Secret", "1; DROP TABLE", "x" * 999):
        with pytest.raises(Refused) as refused:
            ask(talked, thread=name, cursor=1, part=1)
        refusals.add(str(refused.value))
    assert len(refusals) == 1
    assert UNKNOWN in refusals.pop()


@pytest.mark.parametrize("fields", [{"is_lab": True}, {"remembers": False}])
def test_the_lab_and_what_is_kept_out_of_memory_is_read_from_itself_only(
    talked, another, everywhere, fields
):
    hidden = another("Hidden", **fields)
    say(hidden, question("Unseen words"))
    with pytest.raises(Refused, match=UNKNOWN):
        ask(talked, thread=str(hidden.pk))
    assert shown(ask(talked, query="unseen", thread="all")) == []
    assert shown(ask(hidden)) == [1]


def test_recalling_writes_nothing_for_a_thread_that_is_not_remembered(another):
    hidden = another(remembers=False)
    say(hidden, question("Hello"))
    ask(hidden)
    assert not hidden.records.exists()


def test_two_resources_with_the_same_positions_never_mix(talked, everywhere):
    other = Resource.objects.create(key="ben", name="Ben")
    foreign = Thread.objects.create(resource=other, agent="tester", title="Of Ben")
    say(foreign, *[question(f"Secret {number}") for number in range(9)])
    assert Message.objects.count() == 11
    for asked in (
        {},
        {"first": 1, "last": 9},
        {"cursor": 1},
        {"cursor": 2, "part": 5},
        {"query": "secret bees", "thread": "all"},
        {"mode": "threads"},
        {"part_kind": "user", "anchor": "end"},
    ):
        try:
            told = ask(talked, **asked)
        except Refused as refused:
            told = str(refused)
        assert "Secret" not in told
        assert "Ben" not in told


def test_an_unknown_current_thread_is_an_error_of_the_caller(db):
    with pytest.raises(Thread.DoesNotExist):
        ask(Thread(pk=uuid.uuid4()))
