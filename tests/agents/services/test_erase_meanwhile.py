"""What is erased while a request is prepared is not recorded with it."""

from threading import Thread as Worker

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import RequestSnapshot, Turn
from agents.services.begin import snapshot
from agents.services.erase import erase_line
from memory.messages import user_prompt
from memory.models import Blob, Line
from memory.models.record import RecordMoved
from memory.services.append import append
from memory.services.look import look, record_of
from memory.services.note import note
from memory.services.prepare import prepare_from

pytestmark = pytest.mark.django_db(transaction=True)
AT = timezone.now()


@pytest.fixture
def line(thread):
    """Return a line of memory that a turn is about to be sent."""
    return note(record_of(thread).pk, "The code is 7481.")


@pytest.fixture
def turn(thread):
    append(thread.pk, [user_prompt("Hello", AT)], at=AT)
    return Turn.objects.create(thread=thread, number=1, prompt="Hello")


def request(thread):
    return prepare_from(look(thread.pk), prompt_position=1, at=AT)


def told():
    return Blob.objects.filter(text__contains="7481").exists()


def test_a_request_made_of_what_was_erased_since_is_not_recorded(thread, turn, line):
    prepared = request(thread)
    erase_line(line.pk)

    with pytest.raises(RecordMoved), transaction.atomic():
        snapshot(turn, 1, prepared)
    assert not told()
    assert not RequestSnapshot.objects.exists()


def test_who_erases_waits_for_a_request_that_is_being_recorded(thread, turn, line):
    def erase():
        try:
            erase_line(line.pk)
        finally:
            connection.close()

    eraser = Worker(target=erase)
    with transaction.atomic():
        snapshot(turn, 1, request(thread))
        eraser.start()
        # Whoever does not wait is done by then, and has seen nothing to erase.
        eraser.join(0.5)
    eraser.join()

    assert not Line.objects.exists()
    assert RequestSnapshot.objects.count() == 1
    assert not told()


def test_a_request_sent_again_takes_the_record_before_the_old_one_as_who_erases_does(
    thread, turn, line
):
    prepared = request(thread)
    with transaction.atomic():
        snapshot(turn, 1, prepared)

    with CaptureQueriesContext(connection) as said, transaction.atomic():
        snapshot(turn, 1, prepared, again=True)

    statements = [each["sql"] for each in said]
    taken = next(
        n for n, sql in enumerate(statements) if sql.startswith('UPDATE "memory_memoryrec')
    )
    gone = next(n for n, sql in enumerate(statements) if "agents_requestsnapshot" in sql)
    assert taken < gone
    assert RequestSnapshot.objects.filter(turn=turn, step=1).count() == 1
