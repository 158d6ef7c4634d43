from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.models import Turn
from memory.messages import dump, user_prompt
from memory.models import MemoryRecord, Message, Thread
from memory.models.ids import new_id
from memory.models.swift import FromNow, Plus, insert, swap
from memory.services.look import record_of

pytestmark = pytest.mark.django_db
AT = timezone.now()


def test_only_the_row_that_is_as_expected_is_changed(thread, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert swap(Thread, {"pk": thread.pk, "title": ""}, {"title": "One"}) == ()
        assert swap(Thread, {"pk": thread.pk, "title": ""}, {"title": "Two"}) is None
    thread.refresh_from_db()
    assert thread.title == "One"


def test_what_the_row_is_afterwards_is_read_back(thread):
    found = swap(
        Thread, {"pk": thread.pk}, {"last_position": Plus(3)}, returning=("last_position", "title")
    )
    assert found == (3, "")


def test_times_are_the_databases(thread):
    turn = Turn.objects.create(thread=thread, number=1, prompt="one")
    swap(
        Turn, {"pk": turn.pk}, {"started_at": FromNow(), "finished_at": FromNow(timedelta(hours=1))}
    )
    turn.refresh_from_db()
    assert turn.finished_at - turn.started_at == timedelta(hours=1)
    assert abs(turn.started_at - timezone.now()) < timedelta(minutes=5)


def test_a_row_is_inserted_as_the_orm_would(thread):
    message = user_prompt("Hello", AT)
    fields = {
        "thread": thread,
        "kind": "request",
        "payload": dump(message),
        "text": "Hello",
        "tokens": 5,
        "created_at": AT,
    }
    Message.objects.create(position=1, **fields)
    insert(Message(position=2, **fields))

    first, second = (
        {k: v for k, v in row.items() if k not in ("id", "position")}
        for row in Message.objects.order_by("position").values()
    )
    assert first == second


def test_a_row_with_a_key_of_its_own_keeps_it(thread):
    record = record_of(thread)
    other = MemoryRecord(id=new_id(), resource=thread.resource, scope="resource")
    insert(other)
    assert MemoryRecord.objects.get(pk=other.pk).scope == "resource"
    assert MemoryRecord.objects.exclude(pk=record.pk).count() == 1


def test_constraints_are_raised(thread):
    record_of(thread)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(MemoryRecord(resource=thread.resource, thread=thread))


def test_a_row_is_inserted_beside_another_only_while_that_is_as_expected(thread):
    record = record_of(thread)
    where = {"pk": record.pk, "epoch": record.epoch, "closed_at": None}
    rows = [MemoryRecord(id=new_id(), resource=thread.resource, scope="resource") for _ in range(2)]

    assert not insert(rows[0], beside=MemoryRecord, where={**where, "epoch": record.epoch + 1})
    assert insert(rows[1], beside=MemoryRecord, where=where)

    assert set(MemoryRecord.objects.values_list("pk", flat=True)) == {record.pk, rows[1].pk}
