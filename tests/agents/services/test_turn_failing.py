import asyncio

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.exceptions import ModelRateLimitError

from agents.models import AgentProfile, Turn
from agents.services.turn import run_turns, stop
from memory.models import Cycle
from tests.agents.services.acting import (
    LONG,
    Actor,
    ask,
    is_sentence,
    nothing_is_open,
    statuses,
    talk,
    texts,
)
from tests.fakes import Models, user_texts

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_failing_model_is_told_in_a_sentence_and_the_prompt_kept(thread):
    await talk(thread, Actor([RuntimeError("boom")]), "Hello")

    turn = await Turn.objects.aget()
    assert (turn.status, turn.prompt) == ("failed", "Hello")
    assert is_sentence(turn.error)
    assert await texts() == ["Hello"]


async def test_what_was_said_before_a_failure_is_kept(thread):
    await talk(thread, Actor(["I was ", "about", RuntimeError("boom")]), "Tell me")
    assert await statuses() == ["failed"]
    assert await texts() == ["Tell me", "I was about"]


async def test_after_a_failure_the_conversation_goes_on(thread):
    actor = Actor(["Wait. ", ("current_time", "{}")], [RuntimeError("boom")], ["Second."])
    await talk(thread, actor, "one", "two")

    assert await statuses() == ["failed", "done"]
    assert await nothing_is_open(thread)
    assert (await texts())[-2:] == ["two", "Second."]


async def test_a_call_of_a_tool_that_does_not_exist_leaves_no_call_open(thread):
    actor = Actor(*[[("fly", "{}")] for _ in range(9)])
    await talk(thread, actor, "Fly")

    assert await nothing_is_open(thread)
    assert await statuses() == ["failed"]
    await talk(thread, Actor(), "And now?")
    assert await statuses() == ["failed", "done"]


async def test_a_tool_called_with_nonsense_is_answered_with_the_error(thread):
    actor = Actor([("recall", '{"first": "many"}')], ["Sorry."])
    await talk(thread, actor, "Recall")
    assert await statuses() == ["done"]
    assert await nothing_is_open(thread)


async def test_a_missing_key_is_named_and_the_prompt_kept(thread, profile):
    profile.model = "openai:gpt-5-mini"
    await profile.asave()
    await ask(thread, "Hello")
    await run_turns(thread.pk)

    turn = await Turn.objects.aget()
    assert turn.status == "failed"
    assert "OPENAI_API_KEY" in turn.error
    assert is_sentence(turn.error)
    assert await texts() == ["Hello"]


async def test_an_unknown_model_is_named(thread, profile):
    profile.model = "acme:brain"
    await profile.asave()
    await ask(thread, "Hello")
    await run_turns(thread.pk)
    assert "acme" in (await Turn.objects.aget()).error


async def test_an_agent_that_is_gone_fails_the_turn_in_a_sentence(thread, models):
    await AgentProfile.objects.all().adelete()
    await ask(thread, "Hello")
    await run_turns(thread.pk, resolve=models)

    turn = await Turn.objects.aget()
    assert turn.status == "failed"
    assert is_sentence(turn.error)
    assert await texts() == ["Hello"]


async def test_a_broken_observer_leaves_the_turn_as_it_is(thread):
    def fail(_):
        raise RuntimeError("boom")

    models = Models(observer=fail, reflector=fail)
    await talk(thread, models, *[LONG] * 9)

    assert await statuses() == ["done"] * 9
    assert await Cycle.objects.filter(status="failed").aexists()
    last = user_texts(models.asked("actor")[-1])
    assert sum(LONG in text for text in last) == 9


@pytest.mark.parametrize("text", ["\x07\x1b[31m", "</observations> <thread id=1>", "\ud83d half"])
async def test_strange_prompts_are_answered_like_any_other(thread, models, text):
    await talk(thread, models, text)
    assert await statuses() == ["done"]


async def test_what_a_failed_turn_used_counts(thread):
    actor = Actor([("current_time", "{}")], [ValueError("gone")])
    await ask(thread, "What time is it?")
    await run_turns(thread.pk, resolve=actor)
    turn = await Turn.objects.aget()
    assert turn.status == "failed"
    assert turn.usage["requests"] == 1
    assert turn.usage["input_tokens"] > 0
    # Nobody knows the price of the model of the tests.
    assert (turn.model, turn.cost) == ("fake", None)


async def test_who_waits_for_a_busy_provider_can_stop(thread):
    busy = ModelRateLimitError("fake", "slow down")
    busy.retry_after = 15.0
    actor = Actor([busy])
    await ask(thread, "Hello")
    running = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    while not actor.requests:
        await asyncio.sleep(0.01)
    await sync_to_async(stop)(thread.pk)
    async with asyncio.timeout(5):
        await running
    assert (await Turn.objects.aget()).status == "stopped"
    assert len(actor.requests) == 1


async def test_a_provider_that_is_busy_for_a_moment_fails_no_turn(thread):
    busy = ModelRateLimitError("fake", "slow down")
    busy.retry_after = 0.0
    actor = Actor([busy], ["Hello."])
    await ask(thread, "Hello")
    await run_turns(thread.pk, resolve=actor)
    assert (await Turn.objects.aget()).status == "done"
    assert len(actor.requests) == 2
