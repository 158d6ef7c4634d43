import pytest

from memory.engine.size import HEADER_TOKENS
from memory.models import Cursor, Cycle, Line, MemoryRecord, Observation, Revision
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.services import kept, observe
from memory.services.look import look
from tests.memory.services.claiming import claimed
from tests.memory.services.oracle import violations
from tests.memory.services.play import AT, buffer, buffer_all, edit, lapse, request, talk, traced

pytestmark = pytest.mark.django_db


def rows():
    return Observation.objects.count(), Line.objects.count()


def test_a_lapsed_claim_is_taken_over_by_the_next_one(thread):
    talk(thread, 2)
    first = claimed(thread).cycle
    lapse(first)
    second = claimed(thread).cycle

    first.refresh_from_db()
    assert (first.status, first.interrupted) == ("failed", True)
    assert "stopped" in first.error
    assert (second.status, second.owner != first.owner) == ("running", True)
    assert (second.first_position, second.last_position) == (1, 4)


def test_the_old_owner_of_a_lapsed_claim_writes_nothing(thread):
    talk(thread, 2)
    first = claimed(thread)
    lapse(first.cycle)
    second = claimed(thread)

    with pytest.raises(CycleLost):
        observe.commit(first, traced(first))
    assert rows() == (0, 0)
    observe.commit(second, traced(second))
    assert rows() == (1, 4)
    assert violations(thread.pk) == []


def test_the_old_owner_writes_nothing_after_its_successor_did_either(thread):
    talk(thread, 2)
    first = claimed(thread)
    lapse(first.cycle)
    second = claimed(thread)
    observe.commit(second, traced(second))

    with pytest.raises(CycleLost):
        observe.commit(first, traced(first))
    assert rows() == (1, 4)


def test_what_is_kept_of_lines_does_not_hold_what_their_observer_was_asked(
    thread, django_capture_on_commit_callbacks
):
    talk(thread, 2)
    found = claimed(thread)
    with django_capture_on_commit_callbacks(execute=True):
        observation = observe.commit(found, traced(found))

    for line in kept.lines_of([observation.pk], epoch=found.cycle.epoch):
        assert not Observation.cycle.is_cached(line.observation)


def test_a_cycle_is_committed_once(thread):
    talk(thread, 2)
    found = claimed(thread)
    observe.commit(found, traced(found))
    before = rows()

    with pytest.raises(CycleLost):
        observe.commit(found, traced(found))
    assert rows() == before


def test_a_lapsed_claim_nobody_took_over_may_still_be_committed(thread):
    talk(thread, 2)
    found = claimed(thread)
    lapse(found.cycle)
    observe.commit(found, traced(found))
    assert rows() == (1, 4)


@pytest.mark.parametrize("waiting", [False, True])
def test_an_edit_between_claim_and_commit_makes_the_commit_give_up(thread, waiting):
    talk(thread, 7)
    found = claimed(thread, waiting=waiting)
    edit(look(thread.pk).record)

    with pytest.raises(RecordMoved):
        observe.commit(found, traced(found))
    assert rows() == (0, 0)
    assert not Cursor.objects.exists()
    assert not Revision.objects.exists()
    assert MemoryRecord.objects.get().revision == 0
    assert Cycle.objects.get().status == "running"


def test_a_closed_record_refuses_the_commit(thread):
    talk(thread, 2)
    found = claimed(thread)
    MemoryRecord.objects.update(closed_at=AT)

    with pytest.raises(RecordMoved):
        observe.commit(found, traced(found))
    assert rows() == (0, 0)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_range_that_was_covered_meanwhile_is_not_covered_twice(thread, waiting):
    talk(thread, 7)
    late = claimed(thread, waiting=waiting)
    # A claim can be decided on a view that is past when its row is inserted.
    Cycle.objects.update(lane="elsewhere")
    early = claimed(thread)
    observe.commit(early, traced(early))
    before = rows()

    with pytest.raises(CursorMoved):
        observe.commit(late, traced(late))
    assert rows() == before
    assert MemoryRecord.objects.get().revision == 0
    assert violations(thread.pk) == []


def test_observing_at_the_ceiling_shows_the_new_lines_at_once(thread):
    talk(thread, 7)
    observation = buffer(thread, waiting=True)

    revision = Revision.objects.get()
    assert (revision.cause, revision.trigger, revision.tokens_before) == ("observe", "ceiling", 0)
    assert revision.tokens_after == look(thread.pk).tokens
    assert revision.tokens_after == observation.tokens + HEADER_TOKENS
    assert revision.message_tokens_before - revision.message_tokens_after == (
        observation.message_tokens
    )
    assert violations(thread.pk) == []


def test_observing_at_the_ceiling_leaves_the_floor_raw(thread):
    talk(thread, 9)
    buffer(thread, waiting=True)

    view = look(thread.pk)
    assert sum(m.tokens for m in view.raw) >= view.options.thresholds().floor


def test_observing_at_the_ceiling_shows_what_was_buffered_too(thread):
    talk(thread, 2)
    buffer(thread)
    talk(thread, 7)
    buffer(thread, waiting=True)

    shown = Observation.objects.filter(since=1).order_by("first_position")
    assert [o.first_position for o in shown] == [1, 5]
    assert violations(thread.pk) == []


def test_chunks_activated_while_an_observer_thought_stay(thread):
    talk(thread, 4)
    buffer_all(thread)
    talk(thread, 2)
    found = claimed(thread)
    request(thread)
    assert MemoryRecord.objects.get().revision == 1

    observe.commit(found, traced(found))
    assert violations(thread.pk) == []
    assert Observation.objects.filter(since__isnull=True).count() == 1


def test_messages_appended_while_an_observer_thought_stay_raw(thread):
    talk(thread, 7)
    found = claimed(thread, waiting=True)
    talk(thread, 1)
    observe.commit(found, traced(found))

    assert [m.position for m in look(thread.pk).raw][-2:] == [15, 16]
    assert violations(thread.pk) == []
