"""Worlds in which nothing is wrong, and what is said of them."""

import pytest
from uuid_utils.compat import uuid7

from memory.models import Resource, Thread
from memory.verify import Unknown, verify

from .conftest import answer, call, empty_world, result, user


def test_a_world_in_which_every_kind_of_change_happened_is_clean(world, found):
    assert found() == {}


def test_an_empty_database_is_clean(db):
    assert verify().summary == "Every invariant holds (nothing stored yet)."


def test_the_summary_counts_what_was_checked(world):
    assert verify().summary == (
        "Every invariant holds (1 thread, 1 record, 12 messages, 7 observations, 9 lines, "
        "8 revisions, 6 cycles)."
    )


def test_positions_that_no_message_has_are_no_gap(world, found):
    world.set(world.thread, last_position=20)
    world.thread.refresh_from_db()
    world.say(user("Later."), answer("Later indeed."))
    world.observe("e", 11, 15, "Ada asks about wax")
    world.observe("f", 16, 22, "Ada came back")
    world.settle()

    assert found() == {}


def test_only_the_named_record_or_thread_is_checked(world, found):
    other = empty_world(world.thread.resource)
    other.say(user("Hello"))
    other.set(other.message(1), tokens=999)

    assert found(thread=world.thread.pk) == found(record=world.record.pk) == {}
    assert "messages.tokens" in found(thread=other.thread.pk)
    assert "messages.tokens" in found(record=other.record.pk)


@pytest.mark.parametrize("table", ["record", "thread"])
def test_what_is_not_there_is_said_to_be_unknown(table, db):
    unknown = uuid7()
    with pytest.raises(Unknown, match=f"There is no {table} {unknown}"):
        verify(**{table: unknown})


def test_a_thread_that_does_not_remember_has_messages_and_nothing_else(db, found):
    resource = Resource.objects.create(key="ben", name="Ben")
    world = empty_world(resource)
    world.record.delete()
    world.set(world.thread, remembers=False)
    world.say(user("Hello"), answer("Hi"))
    Thread.objects.update(remembers=False)

    assert found() == {}


def test_a_running_turn_may_wait_for_a_result(world, found):
    world.say(user("And now?"), call("c2"))

    assert "pairs.call" in found()
    assert found(running=lambda: {world.thread.pk: 13}) == {}


def test_a_call_from_before_the_running_turn_must_not_wait(world, found):
    world.say(call("c2"), user("And now?"), call("c3"), result("c3"))

    assert list(found(running=lambda: {world.thread.pk: 14})) == ["pairs.call"]
