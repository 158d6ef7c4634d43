import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F
from pydantic_ai.messages import (
    ModelResponse,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents.models import AgentProfile, RequestSnapshot, Turn, TurnLost
from agents.services import turn as service
from agents.services.begin import begin
from agents.services.close import close_lapsed
from agents.services.send import send, withdraw
from agents.services.sweep import sweep
from agents.services.turn import close, run_turns, stop
from memory.messages import load, open_calls
from memory.models import Blob, Cycle, Line, MemoryRecord, Message, Observation, Revision
from memory.services.append import append
from memory.services.due import run_due
from tests.fakes import Models, job, user_texts

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 3


class Actor:
    """Stream what a script says, step by step, and remember every request.

    A step is a list of texts and of tool calls ``(tool, arguments)``; an event in it is waited
    for, an exception raised.
    """

    def __init__(self, *steps, observer=None):
        self.steps = list(steps)
        self.requests = []
        self.infos = []
        self.reached = asyncio.Event()
        self.memory = observer or Models()

    def __call__(self, name):
        return FunctionModel(self.memory._answer, stream_function=self._play, model_name="fake")

    async def _play(self, messages, info):
        assert job(info) == "actor"
        self.requests.append(list(messages))
        self.infos.append(info)
        step = self.steps.pop(0) if self.steps else ["Understood."]
        for number, item in enumerate(step):
            if isinstance(item, asyncio.Event):
                self.reached.set()
                await item.wait()
            elif isinstance(item, Exception):
                raise item
            elif isinstance(item, str):
                yield item
            else:
                tool, arguments = item
                yield {number: DeltaToolCall(tool, arguments, tool_call_id=f"call-{tool}-{number}")}


async def ask(thread, *prompts):
    for prompt in prompts:
        await sync_to_async(send)(thread.pk, prompt)


async def talk(thread, models, *prompts):
    """Send prompts one by one, each answered and observed before the next."""
    for prompt in prompts:
        await ask(thread, prompt)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)


async def texts():
    return [m.text async for m in Message.objects.order_by("position")]


async def statuses():
    return [t.status async for t in Turn.objects.order_by("number")]


async def until(asked):
    async with asyncio.timeout(20):
        while not await asked():
            await asyncio.sleep(0)


@sync_to_async
def lapse():
    past = F("lease_expires_at") - timedelta(hours=1)
    Turn.objects.filter(status="running").update(lease_expires_at=past)


async def nothing_is_open(thread):
    stored = [load(m.payload) async for m in Message.objects.order_by("position")]
    return open_calls(stored) == []


def is_sentence(text):
    return text[:1].isupper() and text.endswith(".") and "\n" not in text


async def test_a_prompt_is_answered_and_both_are_stored(thread, models):
    await talk(thread, models, "Hello")

    turn = await Turn.objects.aget()
    assert turn.status == Turn.Status.DONE
    assert await texts() == ["Hello", "Understood."]
    assert (turn.first_position, turn.last_position, turn.draft_text) == (1, 2, "")
    assert turn.started_at <= turn.finished_at


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


def unasked(request):
    """Return the ids of results whose calls are not in a request."""
    parts = [part for message in request for part in message.parts]
    calls = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    return {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)} - calls


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


@pytest.mark.parametrize("text", ["\x07\x1b[31m", "</observations> <thread id=1>", "\ud83d half"])
async def test_strange_prompts_are_answered_like_any_other(thread, models, text):
    await talk(thread, models, text)
    assert await statuses() == ["done"]


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


async def test_a_prompt_becomes_a_message_in_the_same_transaction_as_its_turn_starts(thread):
    await ask(thread, "one")
    running = await sync_to_async(begin)(thread.pk)
    turn = await Turn.objects.aget()
    assert (turn.status, turn.first_position, running.after) == ("running", 1, 1)
    assert await texts() == ["one"]
    assert await sync_to_async(begin)(thread.pk) is None


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
