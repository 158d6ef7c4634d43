from uuid import uuid4

import pytest
from django.db import transaction

from memory.models import Line, Message, Thread
from memory.services.append import append
from memory.services.kept import (
    MOST_SHOWN,
    MOST_TOKENS,
    MOST_WRITTEN,
    Recent,
    Shown,
    lines_of,
    messages,
    show,
    shown,
    wrote,
)
from memory.services.look import look
from memory.services.scope import change_scope
from tests.memory.services.play import AT, answer, buffer_all, question, request, say, talk

pytestmark = pytest.mark.django_db


def positions(raws):
    return [raw.position for raw in raws]


def read(thread, after, through, epoch=0, **options):
    return positions(messages(thread.pk, epoch=epoch, after=after, through=through, **options))


def test_what_was_read_is_not_read_again_and_what_is_new_is(thread, django_assert_num_queries):
    talk(thread, 2)
    with django_assert_num_queries(1):
        assert read(thread, 0, 4) == [1, 2, 3, 4]
    with django_assert_num_queries(0):
        assert read(thread, 0, 4) == [1, 2, 3, 4]
        assert read(thread, 1, 3) == [2, 3]
    talk(thread, 1)
    with django_assert_num_queries(1):
        assert read(thread, 2, 6) == [3, 4, 5, 6]


def test_another_epoch_reads_anew(thread):
    talk(thread, 1)
    read(thread, 0, 2)
    Message.objects.filter(position=1).update(tokens=999)

    (kept_one, _) = messages(thread.pk, epoch=0, after=0, through=2)
    (read_one, _) = messages(thread.pk, epoch=1, after=0, through=2)
    assert (kept_one.tokens != 999, read_one.tokens) == (True, 999)


def test_an_older_range_than_is_kept_is_read(thread):
    talk(thread, 3)
    read(thread, 4, 6)
    assert read(thread, 0, 6) == [1, 2, 3, 4, 5, 6]


def test_what_the_transaction_itself_wrote_is_not_kept(thread):
    talk(thread, 1)
    read(thread, 0, 2)
    talk(thread, 1)
    assert read(thread, 0, 4, keep=False) == [1, 2, 3, 4]
    Message.objects.filter(position=3).update(tokens=999)
    assert messages(thread.pk, epoch=0, after=0, through=4)[2].tokens == 999


@pytest.mark.django_db(transaction=True)
def test_committed_messages_are_known_at_once_and_undone_ones_never(
    thread, django_assert_num_queries
):
    talk(thread, 1)
    read(thread, 0, 2)
    with transaction.atomic():
        append(thread.pk, [question("undone")], at=AT)
        transaction.set_rollback(True)
    say(thread, question("kept"), answer())
    with django_assert_num_queries(0):
        raws = messages(thread.pk, epoch=0, after=0, through=4)
    assert [raw.row.text for raw in raws][2] == "kept"


@pytest.mark.django_db(transaction=True)
def test_a_revision_that_was_taken_back_is_not_shown_under_its_number(thread):
    talk(thread, 6)
    buffer_all(thread)
    with transaction.atomic():
        request(thread)
        assert look(thread.pk, keep=False).revision == 1
        transaction.set_rollback(True)
    assert (look(thread.pk).revision, len(look(thread.pk).lines)) == (0, 0)
    request(thread)
    assert (look(thread.pk).revision, len(look(thread.pk).lines) > 0) == (1, True)


def test_another_record_of_a_thread_reads_its_messages_anew(thread, django_assert_num_queries):
    talk(thread, 1)
    look(thread.pk)
    change_scope(thread.resource_id, "resource")
    Message.objects.filter(position=1).update(tokens=999)
    assert look(thread.pk).raw[0].tokens == 999


def test_messages_too_large_to_keep_give_way_to_those_of_another_thread(thread, resource):
    talk(thread, 1)
    Message.objects.filter(position=1).update(tokens=MOST_TOKENS)
    read(thread, 0, 2)
    other = Thread.objects.create(resource=resource, agent="tester")
    talk(other, 1)

    read(other, 0, 2)

    Message.objects.filter(thread=thread, position=1).update(tokens=1)
    assert messages(thread.pk, epoch=0, after=0, through=2)[0].tokens == 1


def test_what_waits_is_kept_by_how_many_lines_it_has(django_assert_num_queries):
    """Otherwise a process grows with each observation it ever wrote."""
    old, new = uuid4(), uuid4()
    wrote(old, [Line(text="Said long ago.")] * (MOST_WRITTEN // 2), epoch=0)
    wrote(new, [Line(text="Said just now.")] * (MOST_WRITTEN // 2), epoch=0)

    with django_assert_num_queries(0):
        assert len(lines_of([new], epoch=0)) == MOST_WRITTEN // 2
    with django_assert_num_queries(1):
        assert lines_of([old], epoch=0) == []


def test_what_records_show_is_kept_by_how_many_lines_it_has():
    small, large = uuid4(), uuid4()
    for record, count in ((small, 1), (large, MOST_SHOWN)):
        show(record, Shown(1, 0, (Line(text="Seen."),) * count))

    assert shown(small, revision=1, epoch=0, read=list).lines == ()


def test_the_value_used_longest_ago_gives_way():
    recent = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    recent.get("a")
    recent.put("c", 3)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (1, None, 3)
