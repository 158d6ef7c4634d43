"""Worlds that people have changed, written row by row, in which nothing is wrong."""

import pytest

from memory.models import Line, MemoryRecord, Observation, Thread

from .conftest import World, answer, user


@pytest.fixture
def shared(world):
    """The world's record is its resource's, and another thread is in it."""
    MemoryRecord.objects.filter(pk=world.record.pk).update(scope="resource", thread=None)
    world.record.refresh_from_db()
    thread = Thread.objects.create(resource=world.thread.resource, agent="tester")
    other = World(thread, world.record)
    other.say(user("And tea?"), answer("Hot."), user("And milk?"), answer("Cold."))
    other.observe("o", 1, 2, "Ada drinks tea", since=other.revise("activate"))
    other.settle()
    return other


def test_a_shared_record_of_two_threads_is_clean(shared, found):
    assert found() == {}


def test_what_is_wrong_in_one_thread_of_a_shared_record_is_found(shared, found):
    shared.set(shared.cursor, observed_through=1)
    shared.set(shared.o, message_tokens=1)

    assert {"cursor.place", "coverage.tokens"} <= found().keys()


def test_a_clear_of_one_thread_leaves_the_lines_of_the_others(world, shared, found):
    world.record.refresh_from_db()
    world.record.epoch += 1
    number = world.revise("clear")
    world.set(world.revision(number), thread=world.thread)
    gone = Line.objects.filter(observation__thread=world.thread, until=None, since__gt=0)
    gone.update(until=number)
    world.settle()

    assert found() == {}
    Line.objects.filter(until=number).update(until=None)
    assert "lines.cleared" in found()


def test_a_record_may_begin_with_copies_at_any_revision(world, found):
    world.record.refresh_from_db()
    thread = Thread.objects.create(
        resource=world.thread.resource, agent="tester", parent=world.thread, fork_position=4
    )
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=7)
    fork = World(thread, record)
    messages = list(world.thread.messages.filter(position__lte=4).order_by("position"))
    for message in messages:
        message.pk, message.thread = None, thread
        message.save(force_insert=True)
    Thread.objects.filter(pk=thread.pk).update(last_position=4)
    thread.refresh_from_db()
    row = fork.observe("a", 1, 4, "Ada asked for the time", since=fork.revise("fork"))
    Observation.objects.filter(pk=row.pk).update(place=3, cycle=None)
    row.cycle.delete()
    tokens = sum(line.tokens for line in row.lines.all())
    fork.settle()
    fork.set(fork.revision(8), tokens_before=0, tokens_after=tokens)

    assert found() == {}
