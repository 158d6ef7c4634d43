import asyncio
from decimal import Decimal

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agents.costs import price
from agents.models import AgentProfile, RequestSnapshot, Turn
from agents.services.begin import begin
from agents.services.send import withdraw
from agents.services.turn import run_turns
from memory.models import Blob, Cycle, Line, MemoryRecord, Message, Observation, Revision
from tests.agents.services.acting import LONG, Actor, ask, nothing_is_open, statuses, talk, texts
from tests.fakes import user_texts

pytestmark = pytest.mark.django_db(transaction=True)


async def until(asked):
    async with asyncio.timeout(20):
        while not await asked():
            await asyncio.sleep(0)


async def test_a_prompt_is_answered_and_both_are_stored(thread, models):
    await talk(thread, models, "Hello")

    turn = await Turn.objects.aget()
    assert turn.status == Turn.Status.DONE
    assert await texts() == ["Hello", "Understood."]
    assert (turn.first_position, turn.last_position, turn.draft_text) == (1, 2, "")
    assert turn.started_at <= turn.finished_at
    assert (turn.model, turn.cost) == ("fake", None)


async def test_a_turn_keeps_what_answered_it_and_what_that_cost_then(thread, models, profile):
    await AgentProfile.objects.filter(pk=profile.pk).aupdate(model="openai:gpt-5-mini")
    await talk(thread, models, "Hello")
    await AgentProfile.objects.filter(pk=profile.pk).aupdate(model="offline")

    turn = await Turn.objects.aget()
    used = turn.usage["input_tokens"], turn.usage["output_tokens"]
    assert turn.model == "openai:gpt-5-mini"
    assert turn.cost > 0
    assert turn.cost == pytest.approx(price(turn.model, *used), abs=Decimal("0.000001"))


async def test_a_conversation_becomes_memory(thread, models):
    await talk(thread, models, *[f"{n}: {LONG}" for n in range(16)])

    causes = [r.cause async for r in Revision.objects.order_by("number")]
    assert "activate" in causes
    assert "reflect" in causes
    assert await Cycle.objects.filter(status="failed").acount() == 0
    assert await Line.objects.filter(since__isnull=False).acount() > 0


async def test_the_actor_is_told_its_instructions_at_every_step(thread):
    actor = Actor([("current_time", "{}")], ["It is late."])
    await talk(thread, actor, "How late is it?")
    assert [info.instructions for info in actor.infos] == ["Be brief.", "Be brief."]


async def test_each_step_is_stored_once_and_in_order(thread):
    actor = Actor(["Let me look.", ("current_time", "{}")], ["It is late."])
    await talk(thread, actor, "How late is it?")

    kinds = [m.kind async for m in Message.objects.order_by("position")]
    assert kinds == ["request", "response", "request", "response"]
    assert (await texts())[-1] == "It is late."
    assert await nothing_is_open(thread)


async def test_a_step_is_stored_before_the_next_begins(thread):
    gate = asyncio.Event()
    actor = Actor(["Let me look.", ("current_time", "{}")], [gate, "It is late."])
    await ask(thread, "How late is it?")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()

    assert await Message.objects.acount() == 3
    gate.set()
    await work


async def test_every_request_of_a_turn_leaves_a_snapshot(thread):
    actor = Actor([("current_time", "{}")], ["It is late."])
    await talk(thread, actor, "How late is it?")

    shots = [s async for s in RequestSnapshot.objects.order_by("step")]
    assert [s.step for s in shots] == [1, 2]
    told, said = zip(*[(s.blocks[:2], s.blocks[2:]) for s in shots], strict=True)
    assert [b["kind"] for b in told[0]] == ["instructions", "tools"]
    assert told[0] == told[1]
    ranges = [[(b["kind"], b["first"], b["last"]) for b in blocks] for blocks in said]
    assert ranges == [[("prompt", 1, 1)], [("prompt", 1, 3)]]
    assert all(s.total == sum(b["tokens"] for b in s.blocks) for s in shots)


async def test_a_snapshot_is_of_what_was_sent(thread):
    actor = Actor()
    await talk(thread, actor, *[LONG] * 12)

    assert "<memory>" in user_texts(actor.requests[-1])[0]
    shot = await RequestSnapshot.objects.alatest("turn__number")
    kinds = [block["kind"] for block in shot.blocks]
    assert (kinds[:3], kinds[-2:]) == (
        ["instructions", "tools", "memory"],
        ["reminder", "prompt"],
    )
    assert set(kinds[3:-2]) == {"message"}
    ranges = [(b["first"], b["last"]) for b in shot.blocks if b["kind"] == "message"]
    assert ranges == [(ranges[0][0], shot.blocks[-1]["first"] - 1)]
    memory = await Blob.objects.aget(pk=shot.blocks[2]["hash"])
    assert memory.text == user_texts(actor.requests[-1])[0]
    assert shot.revision > 0


async def test_the_question_is_in_every_request_of_a_tool_loop_of_fifteen_steps(thread):
    calls = [[LONG, ("recall", '{"query": "bees"}')] for _ in range(14)]
    actor = Actor(*calls)
    await talk(thread, actor, f"Which hive is left? {LONG}")

    assert len(actor.requests) == 15
    for request in actor.requests:
        assert sum("Which hive is left?" in text for text in user_texts(request)) == 1
        returns = {
            p.tool_call_id for m in request for p in m.parts if isinstance(p, ToolReturnPart)
        }
        calls = {p.tool_call_id for m in request for p in m.parts if isinstance(p, ToolCallPart)}
        assert returns == calls
    assert await Revision.objects.aexists()
    assert await statuses() == ["done"]


async def test_turns_of_a_thread_run_in_order_one_at_a_time(thread):
    gate = asyncio.Event()
    actor = Actor([gate, "First."], ["Second."])
    await ask(thread, "one", "two")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    assert await statuses() == ["running", "waiting"]
    assert await run_turns(thread.pk, resolve=actor) == 0

    gate.set()
    assert await work == 2
    assert await texts() == ["one", "First.", "two", "Second."]


async def test_a_withdrawn_prompt_is_never_answered(thread, models):
    await ask(thread, "one", "two", "three")
    await sync_to_async(withdraw)(thread.pk, 2)
    await run_turns(thread.pk, resolve=models)

    assert await statuses() == ["done", "withdrawn", "done"]
    assert await texts() == ["one", "Understood.", "three", "Understood."]


async def test_a_prompt_that_came_during_a_turn_is_answered_after_it(thread):
    gate = asyncio.Event()
    actor = Actor([gate, "First."])
    await ask(thread, "one")
    work = asyncio.create_task(run_turns(thread.pk, resolve=actor))
    await actor.reached.wait()
    await ask(thread, "two")
    gate.set()
    assert await work == 2


async def test_a_turn_at_the_ceiling_waits_once_and_sees_the_new_memory(thread, profile):
    profile.memory_options = {"message_tokens": 300}
    await profile.asave()
    actor = Actor()
    for _ in range(7):
        await ask(thread, LONG)
        await run_turns(thread.pk, resolve=actor)

    assert "<memory>" in user_texts(actor.requests[-1])[0]
    assert await Cycle.objects.filter(kind="observe", status="done").acount() >= 1
    assert await RequestSnapshot.objects.acount() == 7


async def test_a_turn_goes_on_raw_when_its_observation_is_late(thread, profile):
    profile.memory_options = {"message_tokens": 300, "wait_seconds": 0.05}
    await profile.asave()
    gate = asyncio.Event()

    class Late(Actor):
        def __call__(self, name):
            async def late(messages, info):
                await gate.wait()
                return self.memory._answer(messages, info)

            return FunctionModel(late, stream_function=self._play, model_name="fake")

    actor = Late()
    for _ in range(6):
        await ask(thread, LONG)
        await run_turns(thread.pk, resolve=actor)
    assert await statuses() == ["done"] * 6
    assert sum(LONG in text for text in user_texts(actor.requests[-1])) == 6

    gate.set()
    await until(lambda: Observation.objects.filter(since__isnull=False).aexists())


async def test_without_memory_the_chat_is_the_same_and_leaves_no_row(thread, models):
    thread.remembers = False
    await thread.asave()
    await talk(thread, models, *[LONG] * 9)

    assert await statuses() == ["done"] * 9
    assert sum(LONG in text for text in user_texts(models.asked("actor")[-1])) == 9
    for model in (MemoryRecord, Cycle, Observation, Revision):
        assert not await model.objects.aexists()


async def test_a_prompt_becomes_a_message_in_the_same_transaction_as_its_turn_starts(thread):
    await ask(thread, "one")
    running = await sync_to_async(begin)(thread.pk)
    turn = await Turn.objects.aget()
    assert (turn.status, turn.first_position, running.after) == ("running", 1, 1)
    assert await texts() == ["one"]
    assert await sync_to_async(begin)(thread.pk) is None
