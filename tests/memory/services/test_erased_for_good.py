"""What is erased comes back by no cache, no fork and no other thread of a shared memory."""

import pytest
from django.utils import timezone

from memory.models import Cycle, MemoryRecord, Message, Observation, Thread
from memory.services import kept
from memory.services.cycles import retire_lapsed
from memory.services.erase import erase_messages, erase_thread
from memory.services.fork import fork
from memory.services.look import look
from memory.services.note import note
from memory.services.request import others_text
from memory.services.scope import change_scope
from tests.memory.verify.conftest import World

from .editing import answer, beekeeping, texts, user, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def empty_thread(world):
    return Thread.objects.create(resource=world.thread.resource, agent="tester")


def reflecting(record, thread):
    """Return a cycle of the Reflector whose lease has lapsed."""
    return Cycle.objects.create(
        record=record,
        thread=thread,
        kind="buffer_reflection",
        lane="reflector",
        epoch=record.epoch,
        lease_expires_at=timezone.now().replace(year=2020),
    )


def share(world):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    return joined


def test_lines_that_wait_are_read_anew_once_anything_was_erased(world):
    kept.wrote(world.d.pk, list(world.d.lines.all()), epoch=world.record.epoch)
    assert kept.lines_of([world.d.pk], epoch=world.record.epoch) != []

    erase_messages(world.thread.pk, 7, 8)

    world.record.refresh_from_db()
    assert kept.lines_of([world.d.pk], epoch=world.record.epoch) == []


def test_what_was_noted_in_an_empty_conversation_goes_with_it(world):
    joined, empty = share(world), empty_thread(world)
    note(joined.pk, "The code is 7481.", thread_id=empty.pk)
    before = look(world.thread.pk)
    assert "The code is 7481." in [line.text for line in before.lines]

    erase_thread(empty.pk)

    after = look(world.thread.pk)
    assert "The code is 7481." not in [line.text for line in after.lines]
    assert after.record.epoch > before.record.epoch
    assert wrong() == []


def test_work_begun_for_a_conversation_that_is_erased_is_given_up(world):
    joined, empty = share(world), empty_thread(world)
    cycle = reflecting(joined, empty)

    erase_thread(empty.pk)

    cycle.refresh_from_db()
    assert (cycle.status, cycle.thread_id) == ("discarded", None)


def test_a_lapsed_cycle_whose_conversation_is_gone_is_ended(world):
    cycle = reflecting(world.record, None)
    assert retire_lapsed(Cycle.objects.filter(pk=cycle.pk)) == 1
    cycle.refresh_from_db()
    assert cycle.interrupted


def test_what_others_said_is_told_anew_where_the_memory_is_another(world):
    other = empty_thread(world)
    record = MemoryRecord.objects.create(resource=other.resource, thread=other)
    World(other, record).say(user("The code is 7481."), answer("Noted."))
    share(world)
    assert "7481" in others_text(look(world.thread.pk))[0]

    change_scope(other.resource_id, "thread")
    erase_messages(other.pk)
    share(world)

    assert "7481" not in others_text(look(world.thread.pk))[0]


@pytest.mark.parametrize("middle", [False, True])
def test_forks_stay_relatives_when_what_they_were_forked_from_is_deleted(world, middle):
    one = fork(world.thread.pk, 8)
    other = fork(one.pk if middle else world.thread.pk, 6)
    gone, erased, left = (one, world.thread, other) if middle else (world.thread, one, other)
    erase_thread(gone.pk, copies=False)

    erase_messages(erased.pk, 3, 4)

    copied = Message.objects.filter(thread=left.pk, position__lte=6).values_list("text", flat=True)
    assert not any("bees" in text for text in copied)
    assert sum("honey" in text for text in copied) == 2
    assert wrong() == []


def test_a_fork_keeps_its_cover_when_what_it_inherited_was_erased(world):
    share(world)
    early = fork(world.thread.pk, 4)
    late = fork(world.thread.pk, 6)
    erase_thread(world.thread.pk, copies=False)

    records = {record.thread_id: record for record in change_scope(early.resource_id, "thread")}

    ends = {
        t: Observation.objects.filter(record=r).latest("last_position") for t, r in records.items()
    }
    assert {t: row.last_position for t, row in ends.items()} == {early.pk: 4, late.pk: 6}
    assert texts(records[late.pk]) == []
    assert wrong() == []
