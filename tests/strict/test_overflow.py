"""A model with a small window, behind the page and on somebody's agent, streaming and not."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from agents.models import RequestSnapshot, Turn
from agents.services.send import send
from agents.services.turn import run_turns
from memory.capability import TurnMemory
from memory.models import Cycle, Message
from memory.overflow import ContextOverflow
from memory.services.due import run_due
from memory.services.late import late_done
from tests.fakes import Models, user_texts
from tests.memory.services import play
from tests.strict.model import Strict

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 8


class Narrow(Strict):
    """Refuse requests with more than so many characters, as providers do."""

    def __init__(self, *steps, most, status=400, **given):
        super().__init__(*steps, **given)
        self.most = most
        self.status = status
        self.refused = 0

    def _next(self, messages):
        if sum(map(len, user_texts(messages))) > self.most:
            self.refused += 1
            words = f"maximum context length is {self.most // 4} tokens"
            raise ModelHTTPError(self.status, "narrow", {"message": words})
        return super()._next(messages)


@pytest.fixture
def roomy(profile):
    """Let nothing be observed for its size."""
    profile.memory_options = {"message_tokens": 30_000}
    profile.save()
    return profile


async def talk(thread, model, turns=1):
    for number in range(turns):
        await sync_to_async(send)(thread.pk, f"{number}: {LONG}")
        await run_turns(thread.pk, resolve=model)


async def statuses():
    return [t.status async for t in Turn.objects.order_by("number")]


async def test_what_is_pending_is_observed_and_the_step_sent_again(roomy, thread):
    model = Narrow(most=5000)
    await talk(thread, model, 12)

    assert await statuses() == ["done"] * 12
    assert model.violations == []
    assert model.refused >= 1
    cycles = [(c.kind, c.trigger, c.status) async for c in Cycle.objects.all()]
    assert set(cycles) == {("observe", "overflow", "done")}
    first = user_texts(model.requests[-1])[0]
    assert first.startswith("<memory>")


async def test_a_step_that_is_sent_again_has_one_snapshot_of_what_was_sent_last(roomy, thread):
    model = Narrow(most=5000)
    await talk(thread, model, 8)
    assert model.refused
    shots = [s async for s in RequestSnapshot.objects.order_by("turn__number", "step")]
    assert len(shots) == 8
    assert len({(s.turn_id, s.step) for s in shots}) == 8
    assert any(block["kind"] == "memory" for block in shots[-1].blocks)


async def test_the_oldest_is_left_out_where_observing_is_not_enough(roomy, thread):
    def fail(_):
        raise RuntimeError("boom")

    model = Narrow(most=5000, memory=Models(observer=fail))
    await talk(thread, model, 9)
    assert await statuses() == ["done"] * 9
    assert model.violations == []
    shot = await RequestSnapshot.objects.alatest("turn__number")
    assert "left_out" in {block["kind"] for block in shot.blocks}
    assert await Message.objects.acount() == 18


async def test_a_prompt_that_no_room_is_enough_for_fails_in_a_sentence(roomy, thread):
    model = Narrow(most=20)
    await talk(thread, model)
    turn = await Turn.objects.aget()
    assert (turn.status, model.refused) == ("failed", 3)
    assert turn.error.startswith("The request is longer than the model can read")
    assert await Message.objects.acount() == 1
    model.most = 20_000
    await talk(thread, model)
    assert await statuses() == ["failed", "done"]
    assert model.violations == []


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_other_failures_end_the_turn_at_once(roomy, thread, status):
    model = Narrow(most=20, status=status)
    await talk(thread, model)
    assert (await statuses(), model.refused) == (["failed"], 1)
    assert not await Cycle.objects.aexists()


async def test_the_option_switches_it_off(roomy, thread):
    roomy.memory_options = {"message_tokens": 30_000, "observe_on_overflow": False}
    await roomy.asave()
    model = Narrow(most=20)
    await talk(thread, model)
    assert (await statuses(), model.refused) == (["failed"], 1)


async def test_an_observation_that_is_late_holds_no_turn_past_its_bound(roomy, thread):
    roomy.memory_options = {"message_tokens": 30_000, "wait_seconds": 0.1}
    await roomy.asave()
    gate = asyncio.Event()

    class Late(Narrow):
        def __call__(self, name):
            model = super().__call__(name)

            async def late(messages, info):
                await gate.wait()
                return self._answer(messages, info)

            model.function = late
            return model

    model = Late(most=5000)
    await asyncio.wait_for(talk(thread, model, 10), 20)
    assert await statuses() == ["done"] * 10
    assert model.refused
    gate.set()
    await late_done()
    await run_due(thread.pk, resolve=model)


async def test_in_the_middle_of_a_loop_the_last_step_stays(roomy, thread):
    steps = [[LONG, ("current_time", {})] for _ in range(12)]
    model = Narrow(*steps, most=5000)
    await sync_to_async(play.talk)(thread, 4)
    await talk(thread, model)
    assert await statuses() == ["done"]
    assert model.violations == []
    for request in model.requests:
        assert sum(f"0: {LONG}" in text for text in user_texts(request)) == 1


async def test_without_streaming_it_is_the_same(roomy, thread):
    model = Narrow(most=3000)
    await sync_to_async(play.talk)(thread, 8, tokens=100)
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    memory = TurnMemory(thread.pk, prompt_position=prompt, at=play.AT, resolve=model)
    agent = Agent(model("narrow"), capabilities=[memory])
    result = await agent.run(message_history=[play.question("Hello")])
    assert (result.output, model.refused) == ("Done.", 1)
    assert user_texts(model.requests[-1])[0].startswith("<memory>")


async def test_a_program_is_told_in_a_sentence_of_its_own(roomy, thread):
    model = Narrow(most=1)
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    memory = TurnMemory(thread.pk, prompt_position=prompt, at=play.AT, resolve=model)
    agent = Agent(model("narrow"), capabilities=[memory])
    with pytest.raises(ContextOverflow, match="longer than the model can read"):
        await agent.run(message_history=[play.question("Hello")])
