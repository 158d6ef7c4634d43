import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.models import AuditEntry, Turn
from agents.services.send import send, turns
from memory.dispatch import NoDispatcher, cycles
from memory.models import Cycle
from memory.publish import publish_with
from omsite.background import Background, one_by_one
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def working(**options):
    """Do a server's background work inside the block."""
    before = turns.use(NoDispatcher()), cycles.use(NoDispatcher())
    background = Background(asyncio.get_running_loop(), **options)
    background.start()
    try:
        yield background
    finally:
        await background.stop()
        turns.use(before[0])
        cycles.use(before[1])
        # What was cancelled may still be in the database's thread.
        await sync_to_async(lambda: None)()
        publish_with(None)


@pytest.fixture(autouse=True)
def offline(profile, settings):
    """Let the offline model do all work, in no time."""
    settings.OFFLINE_DELAY = 0
    profile.model = "offline"
    profile.save()


async def until(asked):
    async with asyncio.timeout(30):
        while not await asked():
            await asyncio.sleep(0)


async def test_a_prompt_that_is_sent_is_answered_in_the_background(thread):
    async with working():
        await sync_to_async(send)(thread.pk, "Hello")
        await until(lambda: Turn.objects.filter(status="done").aexists())


async def test_what_a_turn_makes_due_is_observed_in_the_background(thread):
    async with working():
        await sync_to_async(send)(thread.pk, "I keep bees on the roof. " * 40)
        await until(lambda: Cycle.objects.filter(status="done").aexists())


async def test_what_a_dead_process_left_is_taken_up_at_the_start(thread):
    await sync_to_async(play.talk)(thread, 4)
    await sync_to_async(send)(thread.pk, "Hello")
    async with working():
        await until(lambda: Turn.objects.filter(status="done").aexists())
        await until(lambda: Cycle.objects.filter(status="done").aexists())


async def test_what_is_kept_no_longer_goes_in_the_background(db):
    await AuditEntry.objects.acreate(
        actor_name="root", action="read", at=timezone.now() - timedelta(days=5000)
    )
    async with working(expire_after=timedelta(0)):
        await until(lambda: AuditEntry.objects.filter(action="expire").aexists())
    assert not await AuditEntry.objects.filter(action="read").aexists()


def test_a_sweep_that_fails_keeps_no_other(caplog):
    swept = []

    def failing():
        raise ValueError("a row that cannot be read")

    one_by_one(failing, lambda: swept.append("cycles"))
    assert swept == ["cycles"]
    assert "will be tried again" in caplog.text


async def test_after_stopping_a_prompt_waits_for_the_next_start(thread):
    async with working() as background:
        await background.stop()
        await sync_to_async(send)(thread.pk, "Hello")
        await asyncio.sleep(0)
    assert (await Turn.objects.aget()).status == "waiting"
