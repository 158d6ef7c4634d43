from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.services.thread import start
from memory.models import Message, Observation, Revision, Thread
from memory.services import claims, kept
from memory.services.compact import compact
from memory.services.due import run_due
from memory.services.look import look
from memory.services.operate import observe_now
from tests.memory.services import play
from tests.memory.services.resource_scope.sharing import is_sound, listening

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crowd(shared, resource, profile):
    """Return 1,050 threads, each with a turn."""
    shared(message_tokens=200_000, buffer_tokens=150_000, max_tokens_per_batch=10_000)
    first = start(resource, profile)
    play.talk(first, 1, tokens=20)
    said = list(Message.objects.filter(thread=first).order_by("position"))
    look(first.pk)
    now = timezone.now()
    others = [
        Thread(
            resource=resource,
            agent=profile.slug,
            last_position=2,
            last_active_at=now - timedelta(seconds=number),
        )
        for number in range(1_049)
    ]
    Thread.objects.bulk_create(others)
    fields = ("kind", "payload", "text", "tokens", "model", "created_at", "position")
    Message.objects.bulk_create(
        Message(thread=thread, **{name: getattr(row, name) for name in fields})
        for thread in others
        for row in said
    )
    return [first, *others]


def statements(work):
    with CaptureQueriesContext(connection) as sent:
        work()
    return len(sent)


def test_a_process_that_just_started_reads_a_thousand_threads_in_few_statements(crowd):
    kept.forget_everything()
    assert statements(lambda: look(crowd[0].pk)) <= 20
    assert len(look(crowd[0].pk).others) == 1_049


def test_a_step_of_one_of_a_thousand_threads_is_a_few_statements(crowd):
    play.request(crowd[0])
    play.say(crowd[0], play.question("And now?"))
    assert statements(lambda: play.request(crowd[0])) <= 8


def test_claiming_for_a_thousand_threads_costs_by_the_calls(crowd, shared):
    shared(buffer_tokens=20_000, max_tokens_per_batch=100_000)
    view = look(crowd[0].pk, lanes=True)
    from memory.services.operate import everything_ahead

    decisions = everything_ahead(view)
    assert len(decisions) == 1_050
    with CaptureQueriesContext(connection) as sent:
        claims._free(view, decisions, asked=True)
    assert len(sent) == 1


def test_what_one_call_says_of_many_threads_is_written_in_few_statements(crowd, shared):
    few = [each.pk for each in crowd[:20]]
    Thread.objects.exclude(pk__in=few).update(remembers=False)
    shared(buffer_tokens=1000)
    observing = async_to_sync(run_due)
    assert statements(lambda: observing(few[0], resolve=listening())) <= 40
    assert Observation.objects.count() == 20


async def test_many_threads_are_observed_in_few_calls_and_shown_in_one_revision(crowd):
    few = [each.pk for each in crowd[:150]]
    await Thread.objects.exclude(pk__in=few).aupdate(remembers=False)
    models = listening()
    found = await observe_now(few[0], resolve=models)

    assert (found.done, found.failed) == (150, 0)
    assert len(models.asked("observer")) <= 2
    assert (found.activated, found.after.raw) == (150, 0)
    assert await Revision.objects.acount() == 1
    assert await is_sound() == []


async def test_compacting_many_threads_shows_them_in_one_revision_too(crowd):
    few = [each.pk for each in crowd[:150]]
    await Thread.objects.exclude(pk__in=few).aupdate(remembers=False)
    models = listening()
    found = await compact(few[0], 0, resolve=models)

    assert (found.failed, found.activated) == (0, 149)
    assert len(models.asked("observer")) <= 2
    causes = [revision.cause async for revision in Revision.objects.order_by("number")]
    assert causes == ["activate", "reflect"]
    assert await is_sound() == []
