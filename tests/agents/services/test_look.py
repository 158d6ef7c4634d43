from datetime import timedelta

import pytest
from django.utils import timezone

from agents.looks import (
    VISIT,
    MemoryLook,
    ThreadLook,
    first_news,
    last_look,
    news_of_memories,
    news_of_threads,
)
from agents.services.look import (
    look_at_all,
    look_at_all_memories,
    look_at_memory,
    look_at_thread,
)
from memory.models import MemoryRecord, Thread
from memory.services.look import look as state_of
from memory.services.note import note
from tests.memory.services.play import talk

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LATER = NOW + 2 * VISIT


def refreshed(row):
    row.refresh_from_db()
    return row


@pytest.fixture
def said(thread):
    """Return a thread with two turns."""
    talk(thread, 2)
    return refreshed(thread)


def look(user, thread, through=2**40):
    look_at_thread(user, refreshed(thread), through, NOW)


def test_who_never_looked_is_told_that_and_not_a_number(ada, said):
    assert news_of_threads(ada, [said.pk]) == {said.pk: None}
    assert first_news(ada, said.pk) == (0, 0)


def test_what_came_after_a_look_is_new_to_that_person_alone(ada, ben, said):
    look(ada, said)
    look(ben, said)
    end = said.last_position
    talk(said, 1)
    look(ben, said)

    assert news_of_threads(ada, [said.pk]) == {said.pk: 2}
    assert first_news(ada, said.pk) == (end + 1, 2)
    assert news_of_threads(ben, [said.pk]) == {said.pk: 0}
    assert first_news(ben, said.pk) == (0, 0)


def test_nobody_looks_beyond_the_last_message_nor_back(ada, said):
    look(ada, said, 2**40)
    assert ThreadLook.objects.get().through == said.last_position
    look(ada, said, 1)
    assert ThreadLook.objects.get().through == said.last_position


def test_marking_all_as_seen_takes_in_what_was_never_opened(ada, ben, said, resource, profile):
    from agents.services.thread import start

    other = start(resource, profile)
    look(ada, said)
    talk(said, 1)
    talk(other, 1)
    look(ben, said, 1)

    look_at_all(ada, Thread.objects.filter(resource=resource), LATER)

    assert news_of_threads(ada, [said.pk, other.pk]) == {said.pk: 0, other.pk: 0}
    assert ThreadLook.objects.get(user=ben).through == 1


# ---- memories


@pytest.fixture
def record(thread):
    note(state_of(thread.pk).record.pk, "Ada keeps bees")
    return MemoryRecord.objects.get(thread=thread)


def noted(record, text):
    note(record.pk, text)
    return refreshed(record)


def test_lines_shown_after_a_look_are_new(ada, ben, record):
    assert news_of_memories(ada, [record.pk]) == {record.pk: None}
    look_at_memory(ada, record, record.revision, NOW)
    noted(record, "The hive is on the roof")

    assert news_of_memories(ada, [record.pk]) == {record.pk: 1}
    assert news_of_memories(ben, [record.pk]) == {record.pk: None}


def test_what_was_new_when_a_visit_began_stays_so_until_it_ends(ada, record):
    look_at_memory(ada, record, 1, NOW)
    record = noted(record, "The hive is on the roof")

    assert last_look(ada, record.pk, LATER) == 1
    look_at_memory(ada, record, 2, LATER)
    soon = LATER + timedelta(minutes=1)
    assert last_look(ada, record.pk, soon) == 1
    look_at_memory(ada, record, 2, soon)
    assert last_look(ada, record.pk, soon) == 1
    assert news_of_memories(ada, [record.pk]) == {record.pk: 0}
    assert last_look(ada, record.pk, soon + 2 * VISIT) == 2


def test_a_visit_lasts_while_somebody_looks(ada, record):
    look_at_memory(ada, record, 1, NOW)
    record = noted(record, "The hive is on the roof")
    at = LATER
    for _ in range(4):
        look_at_memory(ada, record, 2, at)
        at += 0.9 * VISIT

    assert last_look(ada, record.pk, at - 0.1 * VISIT) == 1


def test_saying_that_all_is_seen_ends_what_was_new(ada, record):
    look_at_memory(ada, record, 1, NOW)
    record = noted(record, "The hive is on the roof")

    look_at_memory(ada, record, 2, NOW, all_seen=True)

    assert last_look(ada, record.pk, NOW) == 2


def test_looking_again_at_what_is_known_writes_nothing(ada, record, django_assert_num_queries):
    look_at_memory(ada, record, 1, NOW)
    with django_assert_num_queries(1):
        look_at_memory(ada, record, 1, NOW + timedelta(seconds=5))


def test_all_memories_are_seen_at_once(ada, record):
    look_at_memory(ada, record, 1, NOW)
    noted(record, "The hive is on the roof")

    look_at_all_memories(ada, MemoryRecord.objects.all(), LATER)

    assert last_look(ada, record.pk, LATER) == 2
    assert MemoryLook.objects.count() == 1
