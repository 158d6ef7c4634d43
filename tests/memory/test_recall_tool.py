import json

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from memory.models import MemoryRecord, Thread
from memory.offline.model import OfflineModel
from memory.recall_tool import recall_tool
from memory.services.look import record_of
from tests.memory.services.play import question, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talked(thread):
    say(thread, question("The left hive has a new queen."))
    return thread


def calling(arguments, seen):
    """Return a model that calls recall once, and notes what it was offered and told."""

    def model(messages, info):
        seen["tools"] = {tool.name: tool for tool in info.function_tools}
        told = [p.content for p in messages[-1].parts if isinstance(p, ToolReturnPart)]
        seen["told"] = told
        call = ToolCallPart("recall", json.dumps(arguments), "c1")
        return ModelResponse(parts=[TextPart("Done.") if told else call])

    return FunctionModel(model)


async def run(tool, deps=None, **arguments):
    seen = {}
    await Agent(calling(arguments, seen), tools=[tool]).run("Look it up", deps=deps)
    return seen


async def test_an_agent_with_a_thread_id_recalls_what_was_said(talked):
    seen = await run(recall_tool(talked.pk), query="queen")
    assert seen["told"][0].endswith("The left hive has a new queen.")


async def test_the_thread_can_come_from_the_run(talked):
    tool = recall_tool(lambda ctx: ctx.deps.pk)
    assert "queen" in (await run(tool, talked))["told"][0]


async def test_every_argument_is_described_and_simple(talked):
    tool = (await run(recall_tool(talked.pk)))["tools"]["recall"]
    arguments = tool.parameters_json_schema["properties"]
    assert set(arguments) == {
        *("mode", "query", "first", "last", "cursor", "thread", "anchor", "page", "limit"),
        *("detail", "part", "part_kind", "tool", "offset", "before", "after"),
    }
    for schema in arguments.values():
        assert schema["description"].endswith(".")
        assert schema["type"] in ("string", "integer")
    assert arguments["mode"]["enum"] == ["messages", "threads", "words"]
    assert (arguments["page"]["minimum"], arguments["page"]["maximum"]) == (-50, 50)
    assert tool.description.startswith("Read earlier messages again")


async def test_a_tool_for_one_conversation_does_not_speak_of_others(talked, resource):
    tool = recall_tool(talked.pk, scope="thread")
    other = await Thread.objects.acreate(resource=resource, agent="tester", title="Garden")
    record = await sync_to_async(record_of)(talked)
    await MemoryRecord.objects.filter(pk=record.pk).aupdate(config={"retrieval": True})
    seen = await run(tool, thread=str(other.pk))
    assert "thread" not in seen["tools"]["recall"].parameters_json_schema["properties"]
    assert seen["told"][0].startswith("Only this conversation can be recalled.")


async def test_a_range_given_as_cursor_is_a_range(talked):
    await sync_to_async(say)(talked, question("And the right one?"), question("Thanks."))
    ranged = await run(recall_tool(talked.pk), first=1, last=2)
    assert (await run(recall_tool(talked.pk), cursor="1-2"))["told"] == ranged["told"]


async def test_a_refusal_is_an_answer_and_no_failed_call(talked):
    for arguments, told in (
        ({"page": 77}, "page is '77'"),
        ({"mode": "dream"}, "mode is 'dream'"),
        ({"limit": 99}, "limit is '99'"),
        ({"cursor": 1, "part": 7}, "Message 1 has no part 7."),
    ):
        assert (await run(recall_tool(talked.pk), **arguments))["told"][0].startswith(told)


async def test_what_is_switched_off_is_said(talked):
    record = await sync_to_async(record_of)(talked)
    await MemoryRecord.objects.filter(pk=record.pk).aupdate(config={"retrieval": False})
    assert "switched off" in (await run(recall_tool(talked.pk)))["told"][0]


async def test_the_offline_model_quotes_what_it_recalls(talked):
    agent = Agent(OfflineModel(), tools=[recall_tool(talked.pk)])
    result = await agent.run("Quote exactly what I said about the queen")
    assert "The left hive has a new queen." in result.output
    assert "Messages with" not in result.output
