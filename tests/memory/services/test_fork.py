import pytest

from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Revision,
    Thread,
)
from memory.models.blob import digest
from memory.services.change import Refused
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.fork import cuts, fork
from memory.services.note import note
from memory.services.pin import pin

from .editing import answer, beekeeping, call, condense, observe, result, texts, user, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def record(thread):
    return MemoryRecord.objects.get(thread=thread)


def cursor(thread):
    found = Cursor.objects.get(thread=thread)
    return found.observed_through, found.buffered_through


def test_a_fork_holds_the_messages_up_to_its_position_and_what_was_observed_of_them(world, ada):
    child = fork(world.thread.pk, 8, author=ada, reason="To try")

    assert (child.parent_id, child.fork_position, child.last_position) == (world.thread.pk, 8, 8)
    assert child.title == world.thread.title
    own = Message.objects.filter(thread=child).order_by("position")
    theirs = Message.objects.within(world.thread.pk, 1, 8)
    fields = ("position", "kind", "payload", "text", "tokens", "created_at")
    assert list(own.values_list(*fields)) == list(theirs.values_list(*fields))
    assert texts(record(child)) == texts(world.record)
    assert cursor(child) == (6, 8)
    made = Revision.objects.get(record=record(child))
    assert (made.cause, made.number, made.author, made.reason) == ("fork", 2, ada, "To try")
    assert wrong() == []


def test_the_parent_is_as_it_was(world):
    fork(world.thread.pk, 6)

    world.record.refresh_from_db()
    assert (world.record.revision, world.record.epoch) == (2, 0)
    assert Observation.objects.filter(record=world.record).count() == 3


def test_what_ends_beyond_the_fork_is_raw_in_it(world):
    child = fork(world.thread.pk, 2)

    assert texts(record(child)) == []
    assert not Cursor.objects.filter(thread=child).exists()
    assert wrong() == []


def test_a_fork_at_0_begins_anew(world):
    child = fork(world.thread.pk, 0, title=" Once more ")

    assert (child.title, child.title_pinned, child.last_position) == ("Once more", True, 0)
    assert not Message.objects.filter(thread=child).exists()
    assert wrong() == []


@pytest.mark.parametrize(("position", "near"), [(3, "2 and 4"), (1, "0 and 2"), (99, "10")])
def test_where_no_step_ends_the_nearest_places_are_named(world, position, near):
    with pytest.raises(Refused, match=f"No step ends at position {position}.*: {near}"):
        fork(world.thread.pk, position)
    assert Thread.objects.count() == 1


def test_a_step_ends_once_its_tools_have_answered(world):
    world.say(user("And now?"), call("c1"), result("c1"), answer("Nine."), user("Well"))

    assert cuts(world.thread.pk) == [2, 4, 6, 8, 10, 13, 14]
    fork(world.thread.pk, 13)
    with pytest.raises(Refused, match="10 and 13"):
        fork(world.thread.pk, 12)


def test_there_must_be_a_conversation_to_fork(world):
    with pytest.raises(Refused, match="no such conversation"):
        fork(world.record.pk, 2)


def test_lines_come_as_they_are_now_with_notes_and_pins_in_their_order(world):
    edit(world.a0.pk, "Ada asked for noon")
    pin(world.a1.pk)
    forget(world.b0.pk)
    note(world.record.pk, "Ada is careful")

    child = fork(world.thread.pk, 6)

    assert texts(record(child)) == ["Ada asked for noon", "Ada keeps bees", "Ada is careful"]
    assert texts(record(child)) == texts(world.record)
    assert Line.objects.get(observation__record__thread=child, text="Ada keeps bees").pinned
    assert wrong() == []


def test_a_reflection_made_from_what_is_copied_comes_along(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    child = fork(world.thread.pk, 6)

    assert texts(record(child)) == ["Ada asked for things"]
    assert record(child).generation == 1
    assert wrong() == []


def test_a_reflection_made_from_more_gives_way_to_what_it_was_made_from(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    child = fork(world.thread.pk, 4)

    assert texts(record(child)) == ["Ada asked for the time", "Ada keeps bees"]
    assert record(child).generation == 0
    assert wrong() == []


def test_a_fork_of_a_fork_finds_what_stood_behind_the_copied_reflection(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    first = fork(world.thread.pk, 8)
    again = fork(first.pk, 6)
    second = fork(again.pk, 4)

    assert texts(record(again)) == ["Ada asked for things"]
    assert texts(record(second)) == ["Ada asked for the time", "Ada keeps bees"]
    assert wrong() == []


def test_what_was_forgotten_before_a_straddling_reflection_stays_forgotten(world):
    forget(world.a1.pk)
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    assert texts(record(fork(world.thread.pk, 4))) == ["Ada asked for the time"]
    assert wrong() == []


def test_observing_goes_on_in_the_fork(world):
    child = fork(world.thread.pk, 6)
    from tests.memory.verify.conftest import World

    branch = World(child, record(child))
    branch.say(user("And wasps?"), answer("They sting."))
    observe(branch, "e", 7, 8, "Ada asks about wasps")

    assert texts(branch.record) == [*texts(world.record), "Ada asks about wasps"]
    assert wrong() == []


def test_the_calls_behind_copied_lines_can_be_read_and_cost_nothing_twice(world):
    Blob.objects.keep(["What was asked"])
    world.set(world.a.cycle, request_hash=digest("What was asked"), input_tokens=100)

    child = fork(world.thread.pk, 6)

    copy = Observation.objects.get(record__thread=child, first_position=1)
    assert copy.cycle.request_hash == digest("What was asked")
    assert (copy.cycle.input_tokens, copy.cycle.cost, copy.cycle.trigger) == (0, None, "fork")
    assert copy.cycle.lane == f"observer:{child.pk}"


def test_a_thread_that_does_not_remember_is_copied_without_memory(resource):
    from tests.memory.verify.conftest import World

    thread = Thread.objects.create(resource=resource, agent="tester", remembers=False)
    World(thread, None).say(user("Hello"), answer("Hi"))

    child = fork(thread.pk, 2)

    assert not child.remembers
    assert not MemoryRecord.objects.exists()
    assert wrong() == []


def shared(world):
    MemoryRecord.objects.filter(pk=world.record.pk).update(scope="resource", thread=None)
    world.record.refresh_from_db()


def test_in_a_shared_memory_a_fork_shows_nothing_twice(world):
    shared(world)
    world.set(world.b, current_task="Keep bees")
    before = texts(world.record)

    child = fork(world.thread.pk, 8)

    assert texts(world.record) == before
    assert cursor(child) == (6, 6)
    row = Observation.objects.get(thread=child)
    assert (row.first_position, row.last_position, row.current_task) == (1, 6, "Keep bees")
    assert not row.lines.exists()
    made = Revision.objects.filter(record=world.record).latest("number")
    assert (made.cause, made.thread_id) == ("fork", child.pk)
    world.record.refresh_from_db()
    assert world.record.epoch == 0
    assert wrong() == []


def test_in_a_shared_memory_that_observed_nothing_all_is_raw(world):
    shared(world)

    child = fork(world.thread.pk, 2)

    assert cursor(child) == (0, 0)
    assert not Observation.objects.filter(thread=child).exists()
    assert not Cycle.objects.filter(thread=child).exists()
    assert wrong() == []
