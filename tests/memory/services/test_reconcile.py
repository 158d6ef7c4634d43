import pytest

from memory.models import Cursor
from memory.services.look import look
from memory.services.reconcile import Moved, drifted, reconcile
from memory.verify.run import verify
from tests.memory.services.play import buffer_all, request, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def record(thread):
    """Return a record of which some is shown and some buffered."""
    talk(thread, 6)
    buffer_all(thread)
    talk(thread, 1)
    request(thread)
    talk(thread, 5)
    buffer_all(thread)
    return look(thread.pk).record


def test_cursors_that_stand_right_are_left_alone(record):
    assert drifted(record.pk) == 0
    assert reconcile(record.pk) == []


@pytest.mark.parametrize("moved", [{"buffered_through": 99}, {"observed_through": 0}, None])
def test_a_cursor_that_stands_elsewhere_or_is_gone_is_put_where_observations_end(
    thread, record, moved
):
    cursor = Cursor.objects.get(record=record)
    right = cursor.buffered_through, cursor.observed_through
    if moved is None:
        cursor.delete()
        before = None
    else:
        Cursor.objects.filter(pk=cursor.pk).update(**moved)
        cursor.refresh_from_db()
        before = cursor.buffered_through, cursor.observed_through
    assert verify(thread=thread.pk).violations
    assert drifted(record.pk) == 1

    assert reconcile(record.pk) == [Moved(thread.pk, before, right)]

    assert not verify(thread=thread.pk).violations
    talk(thread, 6)
    assert buffer_all(thread)


def test_a_cursor_without_observations_goes_back_to_the_begin(thread):
    talk(thread, 1)
    record = look(thread.pk).record
    Cursor.objects.update_or_create(
        record=record, thread=thread, defaults={"buffered_through": 2, "observed_through": 0}
    )

    reconcile(record.pk)

    assert Cursor.objects.get().buffered_through == 0
