import asyncio

import pytest
from asgiref.sync import sync_to_async

from memory.models import Cycle, Observation
from memory.services import observe
from memory.services.force import claim_pending, observe_pending
from tests.fakes import Models
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)


def ranges():
    found = Observation.objects.filter(kind="observation").order_by("first_position")
    return [(o.first_position, o.last_position, o.since is not None) for o in found]


async def test_what_is_pending_is_observed_below_the_threshold(thread, models):
    await sync_to_async(play.talk)(thread, 3, tokens=20)
    await observe_pending(thread.pk, seconds=5, resolve=models)
    assert await sync_to_async(ranges)() == [(1, 4, True)]
    cycle = await Cycle.objects.aget()
    assert (cycle.kind, cycle.trigger, cycle.status) == ("observe", "overflow", "done")


def test_the_last_step_stays_raw(thread):
    play.say(thread, play.question(), play.calling("a"), play.returning("a"))
    assert claim_pending(thread.pk) is None
    play.say(thread, play.calling("b"), play.returning("b"))
    claimed = claim_pending(thread.pk)
    assert (claimed.cycle.first_position, claimed.cycle.last_position) == (1, 3)


def test_no_call_is_parted_from_its_result(thread):
    play.say(thread, play.question(), play.answer(), play.question(), play.calling("a"))
    assert claim_pending(thread.pk).cycle.last_position == 2


def test_nothing_is_claimed_where_nothing_is_remembered(thread):
    thread.remembers = False
    thread.save()
    play.talk(thread, 3)
    assert claim_pending(thread.pk) is None


def test_one_call_reads_no_more_than_the_threshold(thread):
    play.talk(thread, 12, tokens=100)
    claimed = claim_pending(thread.pk)
    assert 0 < claimed.cycle.message_tokens <= 600


async def test_what_is_buffered_is_shown_with_it(thread, models):
    await sync_to_async(play.talk)(thread, 3)
    assert await sync_to_async(play.buffer)(thread)
    await sync_to_async(play.talk)(thread, 2, tokens=20)
    await observe_pending(thread.pk, seconds=5, resolve=models)
    found = await sync_to_async(ranges)()
    assert len(found) == 2
    assert all(shown for _, _, shown in found)


async def test_it_waits_for_who_is_at_it_already_and_no_longer_than_its_bound(thread, models):
    await sync_to_async(play.talk)(thread, 3)
    claimed = await sync_to_async(observe.claim)(thread.pk)
    assert claimed is not None
    await asyncio.wait_for(observe_pending(thread.pk, seconds=0.2, resolve=models), 5)
    assert models.asked("observer") == []


async def test_an_observer_that_fails_raises_nothing(thread):
    def fail(_):
        raise RuntimeError("boom")

    await sync_to_async(play.talk)(thread, 3)
    await observe_pending(thread.pk, seconds=5, resolve=Models(observer=fail))
    assert (await Cycle.objects.aget()).status == "failed"
