import asyncio
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from memory import ObservationalMemory, settled
from memory.background import RunDispatcher
from memory.config import MemoryOptions
from memory.dispatch import NoDispatcher, cycles
from memory.library import resource_key
from memory.messages import gap_of, load, open_calls
from memory.models import Cycle, Line, MemoryRecord, Message, Resource, Revision, Thread
from memory.runs import ThreadBusy
from memory.services.look import look
from tests.fakes import Models, user_texts
from tests.strict.model import Strict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("settles")]

LONG = "I keep bees on the roof, and the hive on the left has a new queen since spring. " * 3
SMALL = {"message_tokens": 400}


@pytest.fixture(autouse=True)
def _as_a_program_of_its_own(settings):
    settings.MEMORY_MODELS = {"observer": "agent", "reflector": "agent"}
    settings.ACTOR_MODEL = "agent"
    before = cycles.use(NoDispatcher())
    yield
    cycles.use(before)


def agent_of(models, thread="support-42", *, output_type=str, **given):
    memory = ObservationalMemory(thread, **given)
    return Agent(models("fake"), capabilities=[memory], output_type=output_type)


async def texts():
    return [m.text async for m in Message.objects.order_by("position")]


async def stored():
    return [load(m.payload) async for m in Message.objects.order_by("position")]


async def test_a_run_stores_its_prompt_and_its_answer(models):
    result = await agent_of(models).run("Hello")
    assert result.output == "Understood."
    assert await texts() == ["Hello", "Understood."]


async def test_the_next_run_is_sent_what_the_last_one_said(models):
    await agent_of(models).run("Hello")
    await agent_of(models).run("And now?")
    assert user_texts(models.asked("actor")[-1]) == ["Hello", "And now?"]


async def test_what_is_due_runs_in_the_background_and_is_sent_as_memory(models):
    agent = agent_of(models, options=SMALL)
    for number in range(8):
        await agent.run(f"{number}: {LONG}")
        await settled()
    assert len(models.asked("observer")) > 1
    assert user_texts(models.asked("actor")[-1])[0].startswith("<memory>")
    assert await Line.objects.filter(since__isnull=False).acount() > 0
    assert await Cycle.objects.exclude(status="done").acount() == 0


async def test_settled_returns_at_once_where_nothing_ever_ran():
    await settled()


async def test_a_dispatcher_that_is_in_use_is_left_there(models):
    class Bell:
        rung = []

        def wake(self, thread_id):
            self.rung.append(thread_id)

    bell = Bell()
    cycles.use(bell)
    await agent_of(models).run("Hello")
    assert bell.rung
    assert cycles.use(bell) is bell


async def test_the_loop_of_the_runs_takes_the_work_where_nobody_else_does(models):
    await agent_of(models).run("Hello")
    assert isinstance(cycles.use(NoDispatcher()), RunDispatcher)


async def test_a_streamed_run_is_remembered_as_any_other(models):
    agent = agent_of(models)
    async with agent.run_stream_events("Hello") as events:
        async for _ in events:
            pass
    async with agent.run_stream("And now?") as stream:
        assert await stream.get_output() == "Understood."
    assert await texts() == ["Hello", "Understood.", "And now?", "Understood."]


async def test_keys_name_threads_within_their_resource(models):
    for resource in ("", "ada", "ben@example.com"):
        await agent_of(models, resource=resource).run("Hello")
        await agent_of(models, resource=resource).run("Hello")
    assert await Thread.objects.acount() == 3
    assert [t.last_position async for t in Thread.objects.all()] == [4, 4, 4]
    ben = await Resource.objects.aget(name="ben@example.com")
    assert ben.key.startswith("ben-example-com-")


async def test_threads_without_a_resource_have_one_each(models):
    await agent_of(models, "one").run("Hello")
    await agent_of(models, "two").run("Hello")
    assert await Resource.objects.acount() == 2


async def test_a_uuid_names_the_thread_itself(models, thread):
    await agent_of(models, thread.pk).run("Hello")
    await thread.arefresh_from_db()
    assert thread.last_position == 2
    fresh = uuid4()
    await agent_of(models, fresh).run("Hello")
    assert (await Thread.objects.aget(pk=fresh)).last_position == 2


async def test_a_thread_of_another_resource_is_refused(models, thread):
    with pytest.raises(ValueError, match="belongs to 'ada', not to 'ben'"):
        await agent_of(models, thread.pk, resource="ben").run("Hello")


async def test_the_thread_may_differ_from_run_to_run(models):
    memory = ObservationalMemory(lambda ctx: ctx.deps)
    agent = Agent(models("fake"), deps_type=str, capabilities=[memory])
    await asyncio.gather(agent.run("Hello", deps="one"), agent.run("Hello", deps="two"))
    assert await Thread.objects.acount() == 2
    assert await memory.lines("one") == []
    with pytest.raises(ValueError, match="name the one to read"):
        await memory.lines()


async def test_one_memory_for_all_threads_of_a_resource(models):
    given = {"resource": "ada", "scope": "resource"}
    await agent_of(models, "one", **given).run("My hive is on the left.")
    await agent_of(models, "two", **given).run("Hello")
    assert any("My hive is on the left." in t for t in user_texts(models.asked("actor")[-1]))
    with pytest.raises(ValueError, match="was begun with 'resource'"):
        await agent_of(models, "one", resource="ada", scope="thread").run("Hello")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"scope": "all"}, "must be"),
        ({"scope": "resource"}, "name the resource"),
        ({"options": {"scope": "thread"}}, "argument of its own"),
        ({"thread": ""}, "must not be empty"),
        ({"time_zone": "Berlin"}, "must be one like"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(given, problem):
    with pytest.raises(ValueError, match=problem):
        ObservationalMemory(**{"thread": "one", **given})


async def test_a_wrong_option_is_named(models):
    with pytest.raises(ValueError, match="message_token = 5: there is no such option"):
        await agent_of(models, options={"message_token": 5}).run("Hello")


async def test_options_are_written_once_and_only_where_they_differ(models):
    for tokens in (400, 400, 500):
        await agent_of(models, options={"message_tokens": tokens}).run("Hello")
    configured = Revision.objects.filter(cause="config")
    assert await configured.acount() == 2


async def test_the_recall_tool_comes_with_the_option(models):
    asked = []

    class Watched(Models):
        def _answer(self, messages, info):
            asked.append([tool.name for tool in info.function_tools])
            return super()._answer(messages, info)

    for retrieval in (False, {"scope": "thread"}, True):
        await agent_of(Watched(), options={"retrieval": retrieval}).run("Hello")
    assert asked == [[], ["recall"], ["recall"]]


async def test_the_model_recalls_what_was_said():
    strict = Strict(["Noted."], [("recall", {"first": 1, "last": 2})])
    agent = agent_of(strict, options={"retrieval": True})
    await agent.run("My cat is called Minka.")
    await agent.run("What is she called?")
    assert strict.violations == []
    assert "Minka" in str(strict.requests[-1][-1].parts[0].content)


class Answer(BaseModel):
    name: str


async def test_the_result_of_an_output_tool_is_stored_and_its_call_closed():
    strict = Strict(
        [("final_result", {"name": "Minka"})], ["no"], [("final_result", {"name": "M"})]
    )
    agent = agent_of(strict, output_type=Answer)
    assert (await agent.run("Which cat?")).output == Answer(name="Minka")
    assert (await agent.run("Again?")).output == Answer(name="M")
    assert strict.violations == []
    assert open_calls(await stored()) == []


async def test_a_rejected_answer_is_stored_with_what_was_asked_for_instead():
    strict = Strict(["Short."], ["A longer answer."])
    agent = agent_of(strict)

    @agent.output_validator
    def long_enough(output: str) -> str:
        if len(output) < 10:
            raise ModelRetry("Longer, please.")
        return output

    assert (await agent.run("Well?")).output == "A longer answer."
    assert strict.violations == []
    said = await texts()
    assert (len(said), said[0], said[1], said[3]) == (4, "Well?", "Short.", "A longer answer.")


async def test_system_prompts_are_sent_first_in_every_run_and_never_stored(models):
    agent = Agent(
        models("fake"), system_prompt="Be brief.", capabilities=[ObservationalMemory("one")]
    )
    await agent.run("Hello")
    await agent.run("And now?")
    for request in models.asked("actor"):
        prompts = [p for m in request for p in m.parts if isinstance(p, SystemPromptPart)]
        assert [p.content for p in prompts] == ["Be brief."]
        assert request[0].parts[0] == prompts[0]
    assert not any(isinstance(p, SystemPromptPart) for m in await stored() for p in m.parts)


async def test_an_empty_thread_takes_the_history_it_is_given_and_no_other_does(models):
    history = [
        ModelRequest(parts=[UserPromptPart("Old.")]),
        ModelResponse(parts=[TextPart("Yes.")]),
    ]
    await agent_of(models).run("New.", message_history=history)
    await agent_of(models).run("Newer.", message_history=history)
    assert await texts() == ["Old.", "Yes.", "New.", "Understood.", "Newer.", "Understood."]


async def test_a_pause_is_told_where_the_options_say_so(models):
    agent = agent_of(models, options={"temporal_markers": True})
    await agent.run("Hello")
    past = (await Thread.objects.aget()).last_active_at.replace(year=2025)
    await Thread.objects.aupdate(last_active_at=past)
    await agent.run("And now?")
    assert gap_of((await stored())[2])
    assert "<reminder>" in user_texts(models.asked("actor")[-1])[-2]


async def test_runs_of_a_thread_go_one_after_another():
    gate, order = asyncio.Event(), []

    class Slow(Models):
        async def _wait(self, messages, info):
            order.append(user_texts(messages)[-1])
            await gate.wait()
            return super()._answer(messages, info)

        def __call__(self, name):
            model = super().__call__(name)
            model.function = self._wait
            return model

    agent = agent_of(Slow())
    runs = [asyncio.create_task(agent.run(text)) for text in ("one", "two")]
    while not order:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert len(order) == 1
    gate.set()
    await asyncio.gather(*runs)
    assert await texts() in (
        ["one", "Understood.", "two", "Understood."],
        ["two", "Understood.", "one", "Understood."],
    )


async def test_a_run_that_a_tool_starts_in_the_same_thread_is_refused():
    agent = agent_of(Strict([("again", {})]))

    @agent.tool_plain
    async def again() -> str:
        """Run again."""
        with pytest.raises(ThreadBusy):
            await agent.run("Hello")
        return "No."

    await agent.run("Hello")


async def test_a_stream_that_is_left_early_keeps_what_was_said():
    strict = Strict(["One. ", "Two. ", "Three. "])
    agent = agent_of(strict)
    async with agent.run_stream_events("Hello") as events:
        async for event in events:
            if "One" in str(event):
                break
    await agent.run("And now?")
    assert strict.violations == []
    assert open_calls(await stored()) == []
    assert "And now?" in await texts()


def test_any_text_makes_a_key():
    assert resource_key("ada") == "ada"
    keys = {resource_key(text) for text in ("a b", "a-b", "a_b", "äöü", "a" * 200, "a@b")}
    assert len(keys) == 6
    assert all(len(key) <= 100 for key in keys)


async def test_options_in_force_are_those_of_the_record(models):
    await agent_of(models, options={"message_tokens": 777}).run("Hello")
    thread = await Thread.objects.aget()
    view = await sync_to_async(look)(thread.pk)
    assert view.options == MemoryOptions.model_validate(
        {**view.options.model_dump(), "message_tokens": 777}
    )
    assert isinstance(thread.pk, UUID)


async def test_what_fails_a_run_is_told_though_its_end_cannot_be_stored(models):
    strict = Strict(["Wait.", ("leave", {})])
    agent = agent_of(strict)

    @agent.tool_plain
    async def leave() -> str:
        """Leave nothing to store to."""
        await Message.objects.all().adelete()
        await Thread.objects.all().aupdate(remembers=False)
        await sync_to_async(delete_threads)()
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await agent.run("Hello")


def delete_threads():
    MemoryRecord.objects.all().delete()
    Thread.objects.all().delete()


async def test_a_run_works_inside_a_transaction_of_its_caller(models):
    def view():
        with transaction.atomic():
            async_to_sync(agent_of(models).run)("Hello")

    await sync_to_async(view)()
    assert await texts() == ["Hello", "Understood."]
