import pytest

from memory.models import Cursor, Cycle, MemoryRecord, Observation, Resource, Revision, Thread
from memory.services.change import Refused
from memory.services.edit import edit
from memory.services.fork import fork
from memory.services.look import record_of
from memory.services.note import note
from memory.services.pin import pin
from memory.services.restore import restore
from memory.services.scope import change_scope
from tests.memory.verify.conftest import World

from .editing import answer, beekeeping, condense, observe, texts, user, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


@pytest.fixture
def other(world):
    """Another conversation of the same resource, with a memory of its own."""
    thread = Thread.objects.create(resource=world.thread.resource, agent="tester")
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    other = World(thread, record)
    other.say(user("And tea?"), answer("Hot."), user("And milk?"), answer("Cold."))
    observe(other, "o", 1, 2, "Ada drinks tea")
    return other


def test_conversations_that_had_their_own_memory_share_one(world, other, ada):
    (joined,) = change_scope(world.thread.resource_id, "resource", author=ada, reason="A team")

    assert texts(joined) == [
        "Ada asked for the time",
        "Ada keeps bees",
        "Ada asks about honey",
        "Ada drinks tea",
    ]
    for each in (world, other):
        each.record.refresh_from_db()
        assert each.record.closed_at is not None
        assert record_of(Thread.objects.get(pk=each.thread.pk)).pk == joined.pk
    places = {
        c.thread_id: (c.observed_through, c.buffered_through)
        for c in Cursor.objects.filter(record=joined)
    }
    assert places == {world.thread.pk: (6, 8), other.thread.pk: (2, 2)}
    made = Revision.objects.get(record=joined)
    assert (made.cause, made.author, made.reason) == ("scope", ada, "A team")
    assert wrong() == []


def test_they_come_apart_again_each_with_its_own_lines(world, other):
    condense(world, "r", [world.a], "Ada asked for things")
    (joined,) = change_scope(world.thread.resource_id, "resource")

    records = change_scope(world.thread.resource_id, "thread")

    by_thread = {record.thread_id: record for record in records}
    assert texts(by_thread[world.thread.pk]) == ["Ada asked for things", "Ada asks about honey"]
    assert texts(by_thread[other.thread.pk]) == ["Ada drinks tea"]
    joined.refresh_from_db()
    assert joined.closed_at is not None
    assert wrong() == []


def test_a_reflection_of_several_conversations_gives_way_to_what_it_was_made_from(world, other):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    shared = World(world.thread, joined)
    rows = list(Observation.objects.filter(record=joined, since__isnull=False))
    condense(shared, "r", rows, "Ada asks about everything")
    assert texts(joined) == ["Ada asks about everything"]

    records = change_scope(world.thread.resource_id, "thread")

    assert sorted(map(texts, records)) == [
        ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey"],
        ["Ada drinks tea"],
    ]
    assert wrong() == []


def test_notes_and_pins_stay_and_notes_keep_to_their_conversation(world, other):
    pin(world.a1.pk)
    note(world.record.pk, "Ada is careful")
    (joined,) = change_scope(world.thread.resource_id, "resource")
    note(joined.pk, "Everyone is careful")

    records = {row.thread_id: row for row in change_scope(world.thread.resource_id, "thread")}

    assert texts(records[world.thread.pk])[-2:] == ["Ada is careful", "Everyone is careful"]
    assert texts(records[other.thread.pk]) == ["Ada drinks tea", "Everyone is careful"]
    assert wrong() == []


def test_a_closed_record_takes_no_changes_and_its_cycles_are_given_up(world):
    running = world.cycle("buffer", first=9, last=10, status="running")
    waiting = world.reflect("w", [world.a], "Ada asked")

    change_scope(world.thread.resource_id, "resource")

    assert Cycle.objects.get(pk=running.pk).status == "discarded"
    waiting.refresh_from_db()
    assert waiting.discarded_at is not None
    with pytest.raises(Refused, match="closed"):
        edit(world.a0.pk, "Ada asked for noon")
    assert wrong() == []


def test_observing_goes_on_in_the_new_record(world, other):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    branch = World(other.thread, joined)
    observe(branch, "p", 3, 4, "Ada drinks milk")

    assert texts(joined)[-1] == "Ada drinks milk"
    assert wrong() == []


def test_while_a_turn_runs_nothing_is_changed(world):
    def busy():
        raise Refused("An answer is being written.")

    with pytest.raises(Refused, match="being written"):
        change_scope(world.thread.resource_id, "resource", fence=busy)
    assert MemoryRecord.objects.get().closed_at is None
    assert Resource.objects.get().scope == ""


def test_a_scope_is_one_of_two_and_without_records_there_is_nothing_to_build(resource):
    with pytest.raises(Refused, match="use thread or resource"):
        change_scope(resource.pk, "world")
    with pytest.raises(Refused, match="no such resource"):
        change_scope(0, "thread")
    assert change_scope(resource.pk, "resource") == []
    assert Resource.objects.get().scope == "resource"


def test_a_fork_of_a_shared_memory_takes_along_what_it_inherited(world):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    child = fork(world.thread.pk, 6)
    grandchild = fork(child.pk, 4)
    assert texts(joined) == ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey"]

    records = change_scope(world.thread.resource_id, "thread")

    by_thread = {record.thread_id: texts(record) for record in records}
    assert by_thread == {
        world.thread.pk: ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey"],
        child.pk: ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey"],
        grandchild.pk: ["Ada asked for the time", "Ada keeps bees"],
    }
    assert wrong() == []


def test_a_reflection_taken_back_before_does_not_return_beside_what_it_condensed(world, other):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    shared = World(world.thread, joined)
    first, *rest = Observation.objects.filter(record=joined, since__isnull=False).order_by("place")
    condense(shared, "r", [first], "Ada asked for things")
    condense(shared, "s", [shared.rows["r"], *rest], "Ada asks about everything")
    restore(joined.pk, 1)

    records = change_scope(world.thread.resource_id, "thread")

    assert sorted(map(texts, records)) == [
        ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey"],
        ["Ada drinks tea"],
    ]
    assert wrong() == []
