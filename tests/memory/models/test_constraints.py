"""What the tables themselves refuse, whatever the code above them does."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.models import Turn
from memory.models import Cursor, Cycle, Line, MemoryRecord, Message, Observation, Revision
from memory.models.record import RecordMoved

pytestmark = pytest.mark.django_db


@pytest.fixture
def record(thread):
    return MemoryRecord.objects.create(resource=thread.resource, thread=thread)


def refused(model, **fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.create(**fields)


def message(thread, position):
    return {
        "thread": thread,
        "position": position,
        "kind": "request",
        "payload": {},
        "tokens": 1,
        "created_at": timezone.now(),
    }


def observation(record, first, last, **fields):
    return {
        "record": record,
        "thread": record.thread,
        "kind": "observation",
        "first_position": first,
        "last_position": last,
        **fields,
    }


def cycle(record, **fields):
    return {
        "record": record,
        "thread": record.thread,
        "lane": "observer",
        "kind": "buffer",
        "epoch": 0,
        "lease_expires_at": timezone.now(),
        **fields,
    }


def test_two_messages_never_share_a_position(thread):
    Message.objects.create(**message(thread, 1))
    refused(Message, **message(thread, 1))


def test_positions_begin_at_one(thread):
    refused(Message, **message(thread, 0))


def test_a_thread_has_one_open_record(record):
    refused(MemoryRecord, resource=record.resource, thread=record.thread)
    MemoryRecord.objects.update(closed_at=timezone.now())
    MemoryRecord.objects.create(resource=record.resource, thread=record.thread)


def test_a_resource_has_one_open_record(resource):
    MemoryRecord.objects.create(resource=resource, scope="resource")
    refused(MemoryRecord, resource=resource, scope="resource")


def test_a_record_has_a_thread_if_and_only_if_its_scope_is_one(thread):
    refused(MemoryRecord, resource=thread.resource)
    refused(MemoryRecord, resource=thread.resource, thread=thread, scope="resource")


def test_a_cursor_never_observes_further_than_it_buffers(record):
    refused(Cursor, record=record, thread=record.thread, buffered_through=3, observed_through=4)


def test_a_thread_has_one_cursor(record):
    Cursor.objects.create(record=record, thread=record.thread)
    refused(Cursor, record=record, thread=record.thread)


def test_two_observations_never_begin_at_the_same_message(record):
    Observation.objects.create(**observation(record, 1, 4))
    refused(Observation, **observation(record, 1, 2))


@pytest.mark.parametrize("bounds", [(None, None), (1, None), (None, 1), (2, 1)])
def test_an_observation_covers_a_range(record, bounds):
    refused(Observation, **observation(record, *bounds))


def test_an_observation_is_never_discarded(record):
    refused(Observation, **observation(record, 1, 2, discarded_at=timezone.now()))


def test_what_is_shown_has_a_place(record):
    refused(Observation, **observation(record, 1, 2, since=1))
    Observation.objects.create(**observation(record, 1, 2, since=1, place=1))


def test_a_reflection_that_was_discarded_is_never_shown(record):
    reflection = Observation.objects.create(record=record, kind="reflection")
    with pytest.raises(IntegrityError), transaction.atomic():
        Observation.objects.filter(pk=reflection.pk).update(
            discarded_at=timezone.now(), since=1, place=1
        )


@pytest.mark.parametrize(("since", "until"), [(2, 2), (2, 1)])
def test_a_line_is_shown_before_it_goes(record, since, until):
    row = Observation.objects.create(**observation(record, 1, 2))
    fields = {"observation": row, "ordinal": 0, "kind": "plain", "text": "", "tokens": 0}
    refused(Line, **fields, since=since, until=until)


def test_a_line_that_was_never_shown_cannot_go(record):
    row = Observation.objects.create(**observation(record, 1, 2))
    fields = {"observation": row, "ordinal": 0, "kind": "plain", "text": "", "tokens": 0}
    refused(Line, **fields, since=None, until=2)


def test_one_cycle_runs_in_a_lane(record):
    Cycle.objects.create(**cycle(record))
    refused(Cycle, **cycle(record))
    Cycle.objects.create(**cycle(record, status="done", finished_at=timezone.now()))


def test_a_cycle_is_finished_if_and_only_if_it_does_not_run(record):
    refused(Cycle, **cycle(record, finished_at=timezone.now()))
    refused(Cycle, **cycle(record, status="done"))


@pytest.mark.parametrize("status", ["done", "discarded", "cancelled"])
def test_only_what_failed_was_interrupted(record, status):
    ended = {"finished_at": timezone.now(), "interrupted": True}
    Cycle.objects.create(**cycle(record, status="failed", **ended))
    refused(Cycle, **cycle(record, status=status, **ended))


@pytest.mark.parametrize("status", ["done", "discarded"])
def test_only_what_brought_nothing_by_chance_is_tried_again(record, status):
    ended = {"finished_at": timezone.now(), "next_attempt_at": timezone.now()}
    Cycle.objects.create(**cycle(record, status="cancelled", **ended))
    refused(Cycle, **cycle(record, status=status, **ended))


def test_a_number_names_one_revision(record):
    fields = {"number": 1, "cause": "note", "tokens_before": 0, "tokens_after": 0}
    Revision.objects.create(record=record, **fields)
    refused(Revision, record=record, **fields)


def test_one_turn_of_a_thread_runs_and_holds_a_lease(thread):
    lease = {"lease_token": thread.pk, "lease_expires_at": timezone.now()}
    refused(Turn, thread=thread, number=1, status="running", prompt="x")
    Turn.objects.create(thread=thread, number=1, status="running", prompt="x", **lease)
    refused(Turn, thread=thread, number=2, status="running", prompt="x", **lease)


def test_advancing_takes_the_next_number(record):
    assert record.advance() == 1
    assert record.advance(generations=1) == 2
    record.refresh_from_db()
    assert (record.revision, record.generation) == (2, 1)


def test_a_record_read_before_an_edit_neither_advances_nor_holds(record):
    MemoryRecord.objects.update(epoch=1)
    with pytest.raises(RecordMoved):
        record.advance()
    with pytest.raises(RecordMoved):
        record.hold()
    assert MemoryRecord.objects.get().revision == 0


def test_holding_a_record_changes_nothing(record):
    record.hold()
    assert (record.revision, MemoryRecord.objects.get().epoch) == (0, 0)
