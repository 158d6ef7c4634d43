"""What people change while an Observer or a Reflector is at work is never undone by it."""

import pytest

from memory.models import Blob, Cycle, Line, MemoryRecord, Message, Observation
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.services import observe, reflect
from memory.services.change import Stale
from memory.services.clear import clear
from memory.services.cycles import discard
from memory.services.edit import edit
from memory.services.erase import erase_messages, erase_thread
from memory.services.forget import forget
from memory.services.fork import fork
from memory.services.look import look, record_of
from memory.services.note import note
from memory.services.pin import pin
from memory.services.restore import restore
from memory.services.scope import change_scope

from .editing import wrong
from .play import buffer_all, condense, joined, request, seen, talk, traced

GIVEN_UP = (RecordMoved, CursorMoved, CycleLost)


@pytest.fixture
def full(thread):
    """A thread whose memory is past the ceiling, so that a reflection is due."""
    for _ in range(60):
        if look(thread.pk).tokens >= 240:
            return thread
        talk(thread, 1)
        buffer_all(thread)
        request(thread)
    raise AssertionError("The memory never grew.")


@pytest.fixture
def remembered(thread):
    """A thread with visible lines, a buffered observation, and one that is due."""
    talk(thread, 12)
    buffer_all(thread)
    request(thread)
    talk(thread, 2)
    return thread


def lines(thread):
    return list(look(thread.pk).lines)


def told(thread):
    """Return the positions the Actor is told of in lines, and those it gets raw."""
    view = look(thread.pk)
    return sorted(seen(line.text for line in view.lines)), [raw.position for raw in view.raw]


CHANGES = {
    "edit": lambda t: edit(lines(t)[0].pk, "Something else"),
    "pin": lambda t: pin(lines(t)[0].pk),
    "forget": lambda t: forget(lines(t)[0].pk),
    "note": lambda t: note(record_of(t).pk, "Something new"),
    "clear": lambda t: clear(record_of(t).pk),
    "erase": lambda t: erase_messages(t.pk, 1, 2),
    "scope": lambda t: change_scope(t.resource_id, "resource"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_observation_begun_before_a_change_is_given_up_and_its_messages_stay_raw(
    remembered, change
):
    claimed = observe.claim(remembered.pk)
    assert claimed is not None
    change(remembered)
    rows = Observation.objects.count()

    with pytest.raises(GIVEN_UP) as error:
        observe.commit(claimed, traced(claimed))
    discard(claimed.cycle, str(error.value))

    assert Observation.objects.count() == rows
    assert told(remembered)[1][-1] == Message.objects.latest("position").position
    assert not Cycle.objects.running().exists()
    assert wrong() == []


@pytest.mark.parametrize("name", ["edit", "pin", "forget", "erase", "clear"])
def test_a_reflection_begun_before_a_change_is_given_up(full, name):
    claimed = reflect.claim(full.pk)
    assert claimed is not None
    CHANGES[name](full)
    after = told(full)

    with pytest.raises(GIVEN_UP) as error:
        reflect.commit(claimed, joined(claimed), 1)
    discard(claimed.cycle, str(error.value))

    assert told(full) == after
    assert wrong() == []


def test_what_was_erased_is_nowhere_after_its_cycle_gave_up(thread):
    talk(thread, 12)
    claimed = observe.claim(thread.pk)
    assert claimed is not None

    erase_messages(thread.pk)
    with pytest.raises(RecordMoved):
        observe.commit(claimed, traced(claimed))
    discard(claimed.cycle, "It was erased.")

    assert not Line.objects.exists()
    assert not Blob.objects.filter(text__contains="bees").exists()
    assert told(thread) == ([], list(range(1, 25)))
    assert all(raw.value.parts[0].text == "(erased)" for raw in look(thread.pk).raw)
    assert wrong() == []


def test_nothing_is_written_about_a_conversation_that_went_meanwhile(thread):
    talk(thread, 12)
    claimed = observe.claim(thread.pk)
    assert claimed is not None

    erase_thread(thread.pk)
    with pytest.raises(GIVEN_UP):
        observe.commit(claimed, traced(claimed))
    discard(claimed.cycle, "The conversation is gone.")

    for model in (MemoryRecord, Observation, Line, Cycle, Message, Blob):
        assert not model.objects.exists()
    assert wrong() == []


def test_the_actor_is_told_what_people_made_of_memory(remembered):
    first, second, third = lines(remembered)[:3]
    edit(first.pk, "Somebody said something")
    pin(second.pk)
    forget(third.pk)
    note(record_of(remembered).pk, "Ada is careful")

    blocks = str([block.message for block in request(remembered).blocks])

    assert "Somebody said something" in blocks
    assert "Ada is careful" in blocks
    assert third.text not in blocks
    assert first.text not in blocks


def test_a_pinned_line_is_left_standing_by_the_reflector(full):
    pinned = lines(full)[0]
    pin(pinned.pk)

    assert condense(full) is not None
    request(full)

    assert pinned.text in [line.text for line in lines(full)]
    assert len(lines(full)) == 2
    assert wrong() == []


def test_a_fork_sees_what_its_parent_sees_and_both_go_on(remembered):
    last = Message.objects.latest("position").position
    child = fork(remembered.pk, last)
    assert told(child) == told(remembered)

    for each in (remembered, child):
        talk(each, 6)
        buffer_all(each)
        request(each)
        positions, raw = told(each)
        assert positions == list(range(1, raw[0]))
    assert wrong() == []


def test_a_fork_is_told_of_nothing_twice_in_a_shared_memory(remembered):
    change_scope(remembered.resource_id, "resource")
    last = Message.objects.latest("position").position
    child = fork(remembered.pk, last)

    assert told(child)[0] == told(remembered)[0]
    assert told(child)[1][0] == told(remembered)[1][0]
    buffer_all(child)
    assert wrong() == []


def test_restored_lines_are_condensed_again(full):
    before, record = told(full)[0], MemoryRecord.objects.get()
    for _ in range(2):
        assert condense(full) is not None
        request(full)
        assert len(lines(full)) == 1
        assert told(full)[0] == before
        restore(record.pk, record.revision)
        assert len(lines(full)) > 1
        assert told(full)[0] == before
    assert wrong() == []


def test_only_one_of_two_edits_at_the_same_line_wins(remembered):
    line = lines(remembered)[0]
    edit(line.pk, "Mine")

    with pytest.raises(Stale) as error:
        edit(line.pk, "Yours")
    assert (error.value.yours, error.value.theirs) == ("Yours", "Mine")
