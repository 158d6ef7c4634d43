import pytest

from memory.models import Cursor, Cycle, Line, MemoryRecord, Observation, Thread
from memory.services.change import Refused
from memory.services.clear import clear
from memory.services.note import note
from memory.services.restore import restore

from .editing import beekeeping, condense, observe, past, texts, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def test_a_cleared_memory_shows_nothing_and_keeps_its_past(world, ada):
    note(world.record.pk, "Ada is careful")
    before = past(world.record)

    cleared = clear(world.record.pk, author=ada, reason="Anew")

    assert (cleared.revision, cleared.lines, cleared.chunks) == (4, 4, 1)
    assert texts(world.record) == []
    assert before.items() <= past(world.record).items()
    world.record.refresh_from_db()
    assert world.record.epoch == 2
    assert wrong() == []


def test_what_was_covered_stays_covered_and_what_was_buffered_is_raw_again(world):
    clear(world.record.pk)

    cursor = Cursor.objects.get(record=world.record)
    assert (cursor.observed_through, cursor.buffered_through) == (6, 6)
    world.d.refresh_from_db()
    assert (world.d.kind, world.d.since) == ("discarded", None)
    assert world.d.discarded_at is not None
    assert Line.objects.filter(observation=world.d).exists()


def test_observing_goes_on_after_a_clear_over_what_had_been_buffered(world):
    clear(world.record.pk)
    observe(world, "e", 7, 10, "Ada asks about swarms and wax")

    assert texts(world.record) == ["Ada asks about swarms and wax"]
    assert wrong() == []


def test_a_clear_empties_hints_and_gives_up_what_is_under_way(world):
    world.set(world.b, current_task="Keep bees", suggested_response="Yes", extracted={"a": 1})
    waiting = world.reflect("w", [world.a], "Ada asked")
    running = world.cycle("buffer", first=9, last=10, status="running")

    clear(world.record.pk)

    world.b.refresh_from_db()
    assert (world.b.current_task, world.b.suggested_response) == ("", "")
    assert world.b.extracted == {}
    waiting.refresh_from_db()
    assert waiting.discarded_at is not None
    assert Cycle.objects.get(pk=running.pk).status == "discarded"
    assert wrong() == []


def test_restore_brings_back_what_was_cleared(world):
    before = texts(world.record)
    clear(world.record.pk)

    restore(world.record.pk, 1)

    assert texts(world.record) == before
    assert wrong() == []


def test_an_empty_memory_has_nothing_to_clear(resource, thread):
    record = MemoryRecord.objects.create(resource=resource, thread=thread)

    with pytest.raises(Refused, match="nothing to clear"):
        clear(record.pk)


def test_of_a_shared_memory_one_thread_is_cleared(world):
    second = Thread.objects.create(resource=world.thread.resource, agent="tester")
    own = beekeeping_in(world, second)
    condense(world, "mixed", [world.b, own], "Both asked about honey")
    condense(world, "pure", [world.a], "Ada asked for things")

    cleared = clear(world.record.pk, thread_id=world.thread.pk)

    assert (cleared.lines, cleared.chunks, cleared.left) == (1, 1, 1)
    assert texts(world.record) == ["Both asked about honey"]
    assert wrong() == []


def beekeeping_in(world, thread):
    """Make the world's record a shared one and observe something in another thread."""
    from tests.memory.verify.conftest import World

    from .editing import answer, user

    MemoryRecord.objects.filter(pk=world.record.pk).update(scope="resource", thread=None)
    world.record.refresh_from_db()
    other = World(thread, world.record)
    other.say(user("And honey?"), answer("Sweet."))
    row = other.observe("o", 1, 2, "Ben asks about honey", since=other.revise("activate"))
    other.settle()
    world.record.refresh_from_db()
    return Observation.objects.get(pk=row.pk)
