import asyncio

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.messages import PartStartEvent, TextPart, ToolCallPart

from agents.models import Turn
from agents.services import turn as service
from agents.services.begin import begin
from agents.services.turn import run_turns, stop
from memory.messages import load
from memory.models import Message
from tests.agents.services.acting import Actor, ask, nothing_is_open, statuses, talk, texts

pytestmark = pytest.mark.django_db(transaction=True)


async def test_stopping_keeps_what_was_said(thread):
    gate = asyncio.Event()
    actor = Actor(["I was ", "about", gate, "never"])
    await ask(thread, "Tell me")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    assert await sync_to_async(stop)(thread.pk)
    await asyncio.wait_for(work, 20)

    assert await statuses() == ["stopped"]
    assert await texts() == ["Tell me", "I was about"]
    assert (await Turn.objects.aget()).error == ""


async def test_a_stop_from_another_process_is_heard(thread):
    gate = asyncio.Event()
    actor = Actor(["Well,", gate])
    await ask(thread, "Tell me")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    await Turn.objects.aupdate(stop_requested=True)
    await asyncio.wait_for(work, 20)
    assert await statuses() == ["stopped"]


async def test_stopping_inside_a_tool_loop_keeps_the_steps_before(thread):
    gate = asyncio.Event()
    actor = Actor(["Let me look.", ("current_time", "{}")], ["It is", gate])
    await ask(thread, "How late is it?")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    await sync_to_async(stop)(thread.pk)
    await asyncio.wait_for(work, 20)

    assert await Message.objects.acount() == 4
    assert (await texts())[-1] == "It is"
    assert await nothing_is_open(thread)


async def test_with_nothing_running_there_is_nothing_to_stop(thread):
    await ask(thread, "Hello")
    assert not await sync_to_async(stop)(thread.pk)


async def test_after_a_stop_the_next_prompt_is_answered(thread):
    gate = asyncio.Event()
    actor = Actor(["Well,", gate], ["Second."])
    await ask(thread, "one", "two")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    await sync_to_async(stop)(thread.pk)
    await asyncio.wait_for(work, 20)
    assert await texts() == ["one", "Well,", "two", "Second."]


async def test_two_texts_of_one_answer_are_both_kept_when_it_is_stopped(thread):
    await ask(thread, "Tell me")
    running = await sync_to_async(begin)(thread.pk)

    hear = service.Hearing(running)
    for index, part in enumerate(
        [TextPart("First."), ToolCallPart("current_time", {}), TextPart("Second.")]
    ):
        await hear(PartStartEvent(index=index, part=part))
    assert running.text == "First.\n\nSecond."


async def test_an_answer_without_text_does_not_store_an_empty_request(thread):
    actor = Actor([], ["Here."])
    await talk(thread, actor, "Hello")
    for message in [load(m.payload) async for m in Message.objects.order_by("position")]:
        assert message.parts, "A provider refuses a message without parts."
