"""What is counted before a message is taken, from rows of every process."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.limits import MINUTE
from agents.models import Turn
from agents.services.branch import branch
from agents.services.fork import fork
from agents.services.send import LimitReached, retry, send
from agents.services.thread import start
from memory.models import Cycle, MemoryRecord, Resource, Thread
from memory.models.ids import first_id
from tests.memory.services import play

pytestmark = pytest.mark.django_db

NONE = {"user": (0, Decimal(0)), "resource": (0, Decimal(0)), "server": (0, Decimal(0))}


def reached(*args, **kwargs):
    with pytest.raises(LimitReached) as refusal:
        send(*args, **kwargs)
    return refusal.value.reached


def used(thread, author=None, cost=None, **usage):
    number = Turn.objects.filter(thread=thread).count() + 1
    return Turn.objects.create(
        thread=thread,
        author=author,
        number=number,
        prompt="x",
        status="done",
        usage=usage,
        cost=cost,
    )


def observed(thread, model="gpt-5-mini", cost=None, tokens=100):
    record = MemoryRecord.objects.get_or_create(resource=thread.resource, thread=thread)[0]
    return Cycle.objects.create(
        record=record,
        thread=thread,
        lane=f"observer:{uuid4()}",
        kind=Cycle.Kind.BUFFER,
        status=Cycle.Status.DONE,
        epoch=0,
        model=model,
        input_tokens=tokens,
        output_tokens=0,
        cost=cost,
        lease_expires_at=timezone.now(),
        finished_at=timezone.now(),
    )


def test_who_sends_too_fast_waits_until_the_first_of_a_minute_is_past(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 2
    first = send(thread.pk, "one", author=ada)
    send(thread.pk, "two", author=ada)
    found = reached(thread.pk, "three", author=ada)
    assert found.limit == "messages per minute"
    assert 50 < found.retry_after <= 60

    Turn.objects.filter(pk=first.pk).update(created_at=timezone.now() - MINUTE)
    send(thread.pk, "three", author=ada)
    assert Turn.objects.count() == 3


def test_what_a_fork_copied_was_sent_once(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 2
    send(thread.pk, "one", author=ada)
    play.talk(thread, 1)
    Turn.objects.update(status="done", first_position=1, last_position=2)
    for _ in range(3):
        child = fork(thread.pk, 2)
    send(child.pk, "two", author=ada)
    assert reached(child.pk, "three", author=ada).limit == "messages per minute"


def test_others_are_not_counted_nor_what_nobody_sent(settings, thread, ada, ben):
    settings.SENDS_PER_MINUTE = 1
    send(thread.pk, "one", author=ada)
    send(thread.pk, "two", author=ben)
    for _ in range(3):
        send(thread.pk, "by a command")


def test_what_was_taken_is_not_refused_when_it_is_sent_again(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 1
    key = uuid4()
    first = send(thread.pk, "one", key=key, author=ada)
    assert send(thread.pk, "one", key=key, author=ada) == first
    reached(thread.pk, "two", author=ada)


def test_somebody_is_answered_in_so_many_conversations_at_once(settings, resource, profile, ada):
    settings.TURNS_AT_ONCE = 2
    one, two, three = (start(resource, profile) for _ in range(3))
    send(one.pk, "Hello", author=ada)
    send(two.pk, "Hello", author=ada)
    assert reached(three.pk, "Hello", author=ada).limit == "turns at once"
    # Where one is under way already the next one waits for it, and is no more at once.
    send(one.pk, "Hello again", author=ada)
    Turn.objects.filter(thread=two).update(status="done")
    send(three.pk, "Hello", author=ada)


def test_a_message_that_is_too_long_is_told_by_how_much(settings, thread):
    settings.MESSAGE_CHARACTERS = 10
    found = reached(thread.pk, "x" * 11)
    assert (found.allowed, found.used, found.retry_after) == (10, 11, None)
    send(thread.pk, "x" * 10)


def test_tokens_of_a_user_are_those_of_their_turns_today(settings, thread, ada, ben):
    settings.PER_DAY = NONE | {"user": (100, Decimal(0))}
    yesterday = used(thread, ada, input_tokens=500, output_tokens=1)
    Turn.objects.filter(pk=yesterday.pk).update(id=first_id(timezone.now() - timedelta(days=1)))
    used(thread, ben, input_tokens=500, output_tokens=1)
    used(thread, ada, input_tokens=90, output_tokens=9)
    used(thread, ada)
    send(thread.pk, "Hello", author=ada)
    used(thread, ada, input_tokens=0, output_tokens=1)
    found = reached(thread.pk, "Hello", author=ada)
    assert (found.limit, found.used) == ("tokens per user and day", 100)


def test_a_resource_pays_for_its_memory_too(settings, thread, resource, ada, profile):
    settings.PER_DAY = NONE | {"resource": (100, Decimal(0))}
    other = start(Resource.objects.create(key="other", name="Other"), profile)
    used(other, ada, input_tokens=500, output_tokens=0)
    observed(other, tokens=500)
    used(start(resource, profile), input_tokens=50, output_tokens=0)
    send(thread.pk, "Hello", author=ada)
    observed(thread, tokens=50)
    assert reached(thread.pk, "Hello", author=ada).used == 100
    # Whoever sends it: a command as well.
    assert reached(thread.pk, "Hello").limit == "tokens per resource and day"


def test_what_no_reply_priced_is_priced_by_the_list(settings, thread):
    settings.PER_DAY = NONE | {"server": (0, Decimal("0.3"))}
    used(thread, input_tokens=1, output_tokens=1, cost=Decimal("0.1"))
    observed(thread, cost=Decimal("0.05"))
    send(thread.pk, "Hello")
    observed(thread, model="gpt-5-mini", tokens=600_000)
    found = reached(thread.pk, "Hello")
    # $0.25 per million tokens read.
    assert found.used == Decimal("0.3")


def test_a_price_that_nobody_knows_is_not_guessed(settings, thread):
    settings.PER_DAY = NONE | {"server": (0, Decimal("0.01"))}
    observed(thread, model="of-ours", tokens=10**9)
    send(thread.pk, "Hello")


def test_asking_costs_no_statement_more_unless_a_day_is_limited(settings, thread, ada):
    send(thread.pk, "first", author=ada)
    with CaptureQueriesContext(
        connection,
    ) as plain:
        send(thread.pk, "nobody's")
    with CaptureQueriesContext(connection) as counted:
        send(thread.pk, "hers", author=ada)
    assert len(counted) == len(plain)


def test_trying_again_is_sending(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 1
    used(thread, ada)
    Turn.objects.update(status="failed")
    with pytest.raises(LimitReached):
        retry(thread.pk, 1, author=ada)


def test_a_branch_is_refused_before_anything_is_copied(settings, thread, ada):
    settings.SENDS_PER_MINUTE = 1
    used(thread, ada)
    Turn.objects.update(first_position=1, last_position=2)
    with pytest.raises(LimitReached):
        branch(thread.pk, 1, author=ada)
    assert Thread.objects.count() == 1
