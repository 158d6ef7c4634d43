import pytest

from memory.engine.lifecycle import Activate, decide
from memory.models import Cursor, MemoryRecord, Message, Observation, Thread
from memory.models.ids import new_id
from memory.services import kept
from memory.services.activate import activate
from memory.services.look import look, read, record_of, view_of, visible_lines
from memory.services.prepare import request_blocks
from tests.memory.services.play import (
    AT,
    answer,
    buffer,
    buffer_all,
    calling,
    observed,
    question,
    request,
    returning,
    say,
    talk,
)

pytestmark = pytest.mark.django_db


def due(view):
    found = decide(view.snapshot(), view.options.thresholds())
    return next(decision for decision in found if isinstance(decision, Activate))


def positions(view):
    return [message.position for message in view.raw]


def test_an_unknown_thread_is_no_thread(db):
    with pytest.raises(Thread.DoesNotExist):
        look(new_id())


def test_a_thread_that_does_not_remember_has_no_view_and_gets_no_record(thread):
    thread.remembers = False
    thread.save()

    assert look(thread.pk) is None
    assert not MemoryRecord.objects.exists()


def test_the_record_is_made_once(thread):
    assert record_of(thread).pk == record_of(thread).pk
    assert MemoryRecord.objects.count() == 1


def test_a_closed_record_is_not_the_record(thread):
    closed = record_of(thread)
    MemoryRecord.objects.filter(pk=closed.pk).update(closed_at=AT)

    assert record_of(thread).pk != closed.pk


def test_a_new_thread_has_an_empty_view(thread):
    view = look(thread.pk)
    assert (view.revision, view.observed_through, view.tokens) == (0, 0, 0)
    assert (list(view.raw), list(view.lines), list(view.buffered)) == ([], [], [])


def test_buffered_lines_are_invisible_and_their_messages_raw(thread):
    talk(thread, 2)
    buffer(thread)

    view = look(thread.pk)
    assert not view.lines
    assert len(view.buffered) == 1
    assert positions(view) == [1, 2, 3, 4]


def test_what_another_process_shows_after_the_record_was_read_stays_out(thread):
    talk(thread, 6)
    buffer_all(thread)
    state = read(thread.pk)
    other = look(thread.pk)
    activate(other, due(other))

    view = view_of(state)
    assert not view.lines
    assert positions(view) == list(range(1, 13))
    assert [o.first_position for o in view.buffered] == [o.first_position for o in other.buffered]


def test_a_view_taken_before_an_activation_still_holds_every_message_once(thread):
    talk(thread, 6)
    buffer_all(thread)
    view = look(thread.pk)
    activate(look(thread.pk), due(view))

    blocks = request_blocks(view, prompt_position=11, at=AT)
    assert [b.position for b in blocks if b.position] == list(range(1, 13))
    assert "seen" not in str(blocks[0].message)


def test_lines_of_a_past_revision_are_seen_as_they_were(thread):
    talk(thread, 6)
    buffer_all(thread)
    past = record_of(thread)
    request(thread)
    talk(thread, 6)
    buffer_all(thread)
    middle = record_of(thread)
    request(thread)

    now = look(thread.pk)
    assert visible_lines(past.pk, past.revision) == []
    shown = [line.pk for line in visible_lines(middle.pk, middle.revision)]
    assert shown == [line.pk for line in now.lines][: len(shown)]
    assert 0 < len(shown) < len(now.lines)


def test_a_message_appended_after_the_revision_was_read_is_for_the_next_look(thread):
    say(thread, question(), answer())
    state = read(thread.pk)
    say(thread, question(), answer())

    assert positions(view_of(state)) == [1, 2]
    assert positions(look(thread.pk)) == [1, 2, 3, 4]


def test_hints_are_kept_when_a_newer_chunk_has_none(thread):
    talk(thread, 3)
    buffer(thread, output=lambda _: observed(task="Move the hive", response="Ask when"))
    talk(thread, 1)
    buffer(thread, output=lambda _: observed())
    talk(thread, 2)
    request(thread)

    assert Observation.objects.filter(since__isnull=False).count() == 2
    hints = look(thread.pk).hints
    assert (hints.current_task, hints.suggested_response) == ("Move the hive", "Ask when")


def test_newer_hints_take_the_place_of_older_ones_one_by_one(thread):
    talk(thread, 3)
    buffer(thread, output=lambda _: observed(task="Move the hive", response="Ask when"))
    talk(thread, 1)
    buffer(thread, output=lambda _: observed(task="Harvest honey"))
    talk(thread, 2)
    request(thread)

    hints = look(thread.pk).hints
    assert (hints.current_task, hints.suggested_response) == ("Harvest honey", "Ask when")


def test_hints_of_a_buffered_observation_are_invisible(thread):
    talk(thread, 2)
    buffer(thread, output=lambda _: observed(task="Move the hive"))
    assert look(thread.pk).hints.current_task == ""


def test_calls_and_returns_of_messages_are_known_for_cutting(thread):
    say(thread, question(), calling("a", "b"), returning("a", "b"))

    _, calls, returns = look(thread.pk).snapshot().tails[0].pending
    assert calls.calls == {"a", "b"} == returns.returns
    assert not calls.returns
    assert not returns.calls


def test_rows_to_condense_leave_out_pinned_lines(thread):
    talk(thread, 6)
    buffer_all(thread)
    request(thread)
    view = look(thread.pk)
    first = view.lines[0]
    type(first).objects.filter(pk=first.pk).update(pinned=True)
    kept.forget_everything()

    rows = look(thread.pk).snapshot().rows
    assert sum(row.tokens for row in rows) == sum(line.tokens for line in view.lines[1:])


def test_a_view_takes_the_same_few_statements_however_long_the_thread(
    thread, django_assert_num_queries
):
    talk(thread, 9)
    buffer_all(thread)
    request(thread)
    kept.forget_everything()
    # Thread, resource, record and options; messages; lines; what is buffered.
    with django_assert_num_queries(4):
        look(thread.pk)


def test_what_this_process_has_seen_is_not_read_again(thread, django_assert_num_queries):
    talk(thread, 9)
    buffer_all(thread)
    request(thread)
    first = look(thread.pk)
    with django_assert_num_queries(1):
        assert look(thread.pk) == first


def test_the_cursor_serves_writing_only(thread):
    talk(thread, 6)
    buffer_all(thread)
    request(thread)
    before = positions(look(thread.pk))
    Cursor.objects.all().delete()

    assert positions(look(thread.pk)) == before
    assert Message.objects.count() == 12
