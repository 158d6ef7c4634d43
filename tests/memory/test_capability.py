import pytest
from asgiref.sync import sync_to_async
from pydantic_ai import Agent
from pydantic_ai.messages import CachePoint, ModelRequest, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from memory.capability import TurnMemory
from memory.models import Message
from tests.fakes import Models, user_texts
from tests.memory.services import play

pytestmark = pytest.mark.django_db(transaction=True)


def remembering(thread, models, *, prompt=1, **options):
    return TurnMemory(thread.pk, prompt_position=prompt, at=play.AT, resolve=models, **options)


async def ask(thread, models, memory, *, agent=None, text="Hello"):
    """Run somebody's agent on one prompt that is stored already."""
    agent = agent or Agent(models("fake"), instructions="Be brief.", capabilities=[memory])
    return await agent.run(message_history=[play.question(text)])


async def test_anybodys_agent_stores_its_answer_and_is_sent_memory(thread, models):
    await sync_to_async(play.talk)(thread, 6)
    await sync_to_async(play.buffer_all)(thread)
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    result = await ask(thread, models, remembering(thread, models, prompt=prompt))

    assert result.output == "Understood."
    assert (await Message.objects.alatest("position")).text == "Understood."
    (sent,) = models.asked("actor")
    assert user_texts(sent)[0].startswith("<memory>")
    assert user_texts(sent)[-1] == "Hello"


async def test_memory_has_a_cache_point_of_its_own_and_is_never_stored(thread, models):
    await sync_to_async(play.talk)(thread, 6)
    await sync_to_async(play.buffer_all)(thread)
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    await ask(thread, models, remembering(thread, models, prompt=prompt))

    first = models.asked("actor")[0][0]
    assert isinstance(first, ModelRequest)
    pieces = next(p.content for p in first.parts if isinstance(p, UserPromptPart))
    assert any(isinstance(piece, CachePoint) for piece in pieces)
    assert not await Message.objects.filter(text__contains="<memory>").aexists()


async def test_the_history_given_to_the_run_is_not_what_is_sent(thread, models):
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Stored"))
    agent = Agent(models("fake"), capabilities=[remembering(thread, models, prompt=prompt)])
    history = [play.question("Never stored"), play.answer(), play.question("Stored")]
    await agent.run(message_history=history)

    assert user_texts(models.asked("actor")[0]) == ["Stored"]
    assert [m.text async for m in Message.objects.order_by("position")] == ["Stored", "Understood."]


async def test_every_request_is_recorded_and_every_message_told(thread):
    steps = iter([[("look", "{}")], [("look", "{}")], ["Done."]])

    async def play_steps(messages, info):
        for item in next(steps):
            yield item if isinstance(item, str) else {0: DeltaToolCall(item[0], item[1])}

    recorded, stored = [], []
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Look"))
    memory = remembering(
        thread,
        Models(),
        prompt=prompt,
        record=lambda step, prepared: recorded.append((step, len(prepared.blocks))),
        stored=lambda message: stored.append(message.position),
    )
    agent = Agent(FunctionModel(stream_function=play_steps), capabilities=[memory])

    @agent.tool_plain
    def look() -> str:
        """Look."""
        return "A hive."

    async with agent.run_stream_events(message_history=[play.question("Look")]) as events:
        async for _ in events:
            pass
    assert recorded == [(1, 1), (2, 3), (3, 5)]
    assert stored == [2, 3, 4, 5, 6]


async def test_a_fence_that_refuses_ends_the_run_before_a_model_is_asked(thread, models):
    def refuse():
        raise PermissionError("Lost.")

    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    with pytest.raises(PermissionError):
        await ask(thread, models, remembering(thread, models, prompt=prompt, fence=refuse))
    assert models.requests == []
    assert await Message.objects.acount() == 1


async def test_a_run_at_the_ceiling_waits_once_and_is_sent_what_was_observed(thread, models):
    await sync_to_async(play.talk)(thread, 8)
    (prompt,) = await sync_to_async(play.say)(thread, play.question("Hello"))
    memory = remembering(thread, models, prompt=prompt)
    await ask(thread, models, memory)

    assert memory.waited
    assert len(models.asked("observer")) == 1
    assert user_texts(models.asked("actor")[0])[0].startswith("<memory>")
