import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, ToolCallPart

from agents.models import Turn, TurnLost
from agents.services.begin import begin
from agents.services.close import close_lapsed
from agents.services.sweep import sweep
from agents.services.thread import start
from agents.services.turn import close, run_turns
from memory.models import Message
from memory.services.append import append
from tests.agents.services.acting import Actor, ask, is_sentence, nothing_is_open, statuses, texts

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def lapse():
    past = F("lease_expires_at") - timedelta(hours=1)
    Turn.objects.filter(status="running").update(lease_expires_at=past)


async def test_a_lapsed_turn_is_closed_as_interrupted_with_its_draft(thread, models):
    await ask(thread, "one", "two")
    first = await sync_to_async(begin)(thread.pk)
    await Turn.objects.filter(pk=first.turn.pk).aupdate(draft_text="I was about")
    await lapse()
    assert await run_turns(thread.pk, resolve=models) == 1

    assert await statuses() == ["interrupted", "done"]
    assert await texts() == ["one", "I was about", "two", "Understood."]
    assert is_sentence((await Turn.objects.aget(number=1)).error)


async def test_a_turn_whose_lease_holds_is_left_alone(thread, models):
    await ask(thread, "one", "two")
    await sync_to_async(begin)(thread.pk)
    assert await sync_to_async(close_lapsed)() == 0
    assert await run_turns(thread.pk, resolve=models) == 0
    assert await statuses() == ["running", "waiting"]


async def test_a_lapsed_turn_leaves_no_call_open(thread, models):
    await ask(thread, "one")
    running = await sync_to_async(begin)(thread.pk)
    response = ModelResponse(parts=[ToolCallPart("recall", {}, "c1")])
    await sync_to_async(append)(thread.pk, [response], at=running.at)
    await lapse()
    assert await sync_to_async(close_lapsed)() == 1

    assert await nothing_is_open(thread)
    last = await Message.objects.alatest("position")
    assert (await Turn.objects.aget()).last_position == last.position == 3


async def test_the_sweep_closes_what_lapsed_and_wakes_what_waits(thread, bell):
    await ask(thread, "one", "two")
    await sync_to_async(begin)(thread.pk)
    await lapse()
    bell.rung.clear()
    assert await sync_to_async(sweep)() == 1

    assert await statuses() == ["interrupted", "waiting"]
    assert bell.rung == [thread.pk]


async def test_a_turn_that_cannot_be_closed_keeps_no_other_and_no_prompt(thread, bell, profile):
    other = await sync_to_async(start)(thread.resource, profile)
    for each in (thread, other):
        await ask(each, "one", "two")
        await sync_to_async(begin)(each.pk)
    # What comes after the prompt cannot be read.
    await sync_to_async(append)(thread.pk, [ModelResponse(parts=[])], at=timezone.now())
    await Message.objects.filter(thread=thread, position=2).aupdate(payload={"kind": "unknown"})
    await lapse()
    bell.rung.clear()
    assert await sync_to_async(sweep)() == 1

    assert not await Turn.objects.filter(thread=other, status="running").aexists()
    assert set(bell.rung) == {thread.pk, other.pk}


async def test_a_runner_that_lost_its_turn_writes_nothing_more(thread):
    gate = asyncio.Event()
    actor = Actor(["I was ", gate, "late"])
    await ask(thread, "one")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    await lapse()
    assert await sync_to_async(close_lapsed)() == 1
    before = await texts()
    gate.set()
    await asyncio.wait_for(work, 20)

    assert await texts() == before
    assert await statuses() == ["interrupted"]


async def test_a_lost_turn_cannot_be_closed(thread):
    await ask(thread, "one")
    running = await sync_to_async(begin)(thread.pk)
    await lapse()
    await sync_to_async(close_lapsed)()
    before = await texts()

    with pytest.raises(TurnLost):
        await sync_to_async(close)(running, Turn.Status.DONE)
    with pytest.raises(TurnLost):
        await sync_to_async(running.fence)()
    assert await texts() == before
    assert await statuses() == ["interrupted"]


async def test_a_runner_cancelled_in_the_middle_leaves_its_turn_to_the_lease(thread, models):
    gate = asyncio.Event()
    actor = Actor(["I was ", gate])
    await ask(thread, "one")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    work.cancel()
    await asyncio.wait({work})
    assert await statuses() == ["running"]

    await lapse()
    await run_turns(thread.pk, resolve=models)
    assert await statuses() == ["interrupted"]
