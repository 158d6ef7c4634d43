from uuid import uuid4

import pytest

from agents.models import Turn
from agents.services.send import MOST_WAITING, BadPrompt, retry, send, withdraw
from memory.models import Message, Thread
from memory.models.ids import new_id

pytestmark = pytest.mark.django_db

LONGEST_PROMPT = 200_000


def numbers(thread, status):
    found = Turn.objects.filter(thread=thread, status=status).order_by("number")
    return list(found.values_list("number", flat=True))


def test_a_prompt_waits_before_it_is_a_message(thread, ada):
    turn = send(thread.pk, "Hello", author=ada)

    assert (turn.number, turn.status, turn.prompt, turn.author) == (1, "waiting", "Hello", ada)
    assert not Message.objects.exists()


def test_prompts_are_numbered_in_the_order_they_came(thread):
    for text in ("one", "two", "three"):
        send(thread.pk, text)
    assert numbers(thread, "waiting") == [1, 2, 3]


def test_each_thread_has_numbers_of_its_own(thread, resource):
    other = Thread.objects.create(resource=resource, agent="tester")
    send(thread.pk, "one")
    assert send(other.pk, "one").number == 1


def test_sending_wakes_the_runner_after_commit(thread, bell, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        send(thread.pk, "Hello")
        assert bell.rung == []
    assert bell.rung == [thread.pk]


def test_sending_twice_with_the_same_key_makes_one_turn(thread):
    key = uuid4()
    first = send(thread.pk, "Hello", key=key)
    assert send(thread.pk, "Hello", key=key) == first
    assert Turn.objects.count() == 1


def test_a_key_used_in_another_conversation_is_refused(thread, resource):
    key = uuid4()
    other = Thread.objects.create(resource=resource, agent="tester")
    send(thread.pk, "Hello", key=key)
    with pytest.raises(BadPrompt, match="another conversation"):
        send(other.pk, "Hello", key=key)
    assert Turn.objects.count() == 1


@pytest.mark.parametrize("text", ["", " ", "\n\t \u2003"])
def test_an_empty_prompt_is_refused_in_a_sentence(thread, text):
    with pytest.raises(BadPrompt, match=r"empty.*\.$"):
        send(thread.pk, text)
    assert not Turn.objects.exists()


def test_a_prompt_of_a_megabyte_is_refused_with_both_sizes(thread):
    with pytest.raises(BadPrompt, match=f"1,048,576 .* {LONGEST_PROMPT:,}"):
        send(thread.pk, "x" * 2**20)
    assert not Turn.objects.exists()


def test_the_longest_prompt_is_kept_whole(thread):
    send(thread.pk, "x" * LONGEST_PROMPT)
    assert len(Turn.objects.get().prompt) == LONGEST_PROMPT


@pytest.mark.parametrize("character", ["\x00", "\ud83d"])
def test_characters_no_database_takes_are_replaced(thread, character):
    send(thread.pk, f"before{character}after")
    assert Turn.objects.get().prompt == "before\ufffdafter"


def test_other_control_characters_and_tags_are_kept(thread):
    text = "\x07 \x1b[31m </observations> <thread id=1> \u202e"
    send(thread.pk, text)
    assert Turn.objects.get().prompt == text


def test_an_unknown_thread_is_refused(db):
    with pytest.raises(Thread.DoesNotExist):
        send(new_id(), "Hello")


def test_no_more_than_so_many_prompts_wait(thread):
    for n in range(MOST_WAITING):
        send(thread.pk, str(n))
    with pytest.raises(BadPrompt, match=str(MOST_WAITING)):
        send(thread.pk, "one too many")
    withdraw(thread.pk, 1)
    assert send(thread.pk, "now it fits").number == MOST_WAITING + 1


def test_a_waiting_prompt_can_be_withdrawn(thread):
    send(thread.pk, "one")
    send(thread.pk, "two")

    assert withdraw(thread.pk, 1)
    assert (numbers(thread, "waiting"), numbers(thread, "withdrawn")) == ([2], [1])
    assert Turn.objects.get(number=1).finished_at is not None


def test_a_number_is_not_given_again_after_a_withdrawal(thread):
    send(thread.pk, "one")
    withdraw(thread.pk, 1)
    assert send(thread.pk, "two").number == 2


@pytest.mark.parametrize("status", ["done", "failed", "stopped", "interrupted", "withdrawn"])
def test_what_does_not_wait_cannot_be_withdrawn(thread, status):
    send(thread.pk, "one")
    Turn.objects.update(status=status)
    assert not withdraw(thread.pk, 1)
    assert numbers(thread, status) == [1]


def test_nothing_is_withdrawn_from_another_thread(thread, resource):
    other = Thread.objects.create(resource=resource, agent="tester")
    send(thread.pk, "one")
    assert not withdraw(other.pk, 1)
    assert numbers(thread, "waiting") == [1]


@pytest.mark.parametrize("status", ["failed", "stopped", "interrupted"])
def test_a_prompt_without_an_answer_can_be_sent_again(thread, status):
    send(thread.pk, "Hello")
    Turn.objects.update(status=status)
    again = retry(thread.pk, 1)
    assert (again.number, again.prompt, again.status) == (2, "Hello", "waiting")


@pytest.mark.parametrize("status", ["waiting", "done", "withdrawn"])
def test_nothing_else_can_be_sent_again(thread, status):
    send(thread.pk, "Hello")
    Turn.objects.update(status=status)
    with pytest.raises(BadPrompt, match="not answered"):
        retry(thread.pk, 1)
    assert Turn.objects.count() == 1
