import asyncio
import json
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agents.tools import RECALL_HERE, TOOLS, Deps, current_time, tools_named
from memory.config import MemoryOptions
from memory.models import Resource, Thread
from memory.tokens import count
from tests.memory.services.play import answer, question, say

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Context:
    """Stand where pydantic-ai's context of a run stands."""

    deps: Deps


@pytest.fixture
def deps(thread):
    return Deps(thread_id=thread.pk, zone=ZoneInfo("Europe/Berlin"))


@pytest.fixture
def spoken(thread):
    say(
        thread,
        question("The left hive has a new queen."),
        answer("Good news."),
        question("The right hive gave twelve jars of honey."),
        answer("That is a lot of honey."),
    )
    return thread


async def recall(deps, *, given=None, **arguments):
    """Call recall as a model does, and return what it is told."""
    told = []
    called = ToolCallPart("recall", json.dumps(arguments) if given is None else given, "c1")

    def model(messages, info):
        told.extend(p.content for p in messages[-1].parts if isinstance(p, ToolReturnPart))
        return ModelResponse(parts=[TextPart("Done.") if told else called])

    agent = Agent(FunctionModel(model), deps_type=Deps, tools=tools_named(["recall"]))
    await agent.run("Look it up", deps=deps)
    return told[0]


def names(options):
    return [tool.name for tool in tools_named(["recall", "current_time"], options)]


def test_tools_are_found_by_name_and_unknown_names_left_out():
    assert tools_named(["recall", "fly", "current_time"]) == [
        TOOLS["recall"],
        TOOLS["current_time"],
    ]
    assert set(TOOLS) == {"recall", "current_time"}


def test_an_agent_with_retrieval_switched_off_is_not_offered_recall():
    assert names(MemoryOptions(retrieval=False)) == ["current_time"]
    assert names(MemoryOptions(retrieval=True)) == ["recall", "current_time"]
    assert names(MemoryOptions()) == ["recall", "current_time"]


def test_an_agent_that_may_recall_its_own_conversation_only_is_shown_no_other():
    for options in (MemoryOptions(), MemoryOptions(retrieval={"scope": "thread"})):
        assert tools_named(["recall"], options) == [RECALL_HERE]
    assert tools_named(["recall"], MemoryOptions(retrieval=True)) == [TOOLS["recall"]]


async def test_the_time_is_told_in_the_users_zone(deps):
    assert "(CE" in await current_time(Context(deps))


async def test_messages_are_recalled_word_for_word_with_position_and_speaker(deps, spoken):
    found = await recall(deps, query="queen")
    assert found.endswith("\n\n[1] User (2026-03-02 10:00): The left hive has a new queen.")


async def test_a_range_is_recalled_whole(deps, spoken):
    found = await recall(deps, first=2, last=3)
    assert [line[:3] for line in found.split("\n\n")[1:]] == ["[2]", "[3]"]


@pytest.mark.parametrize(
    "given",
    [
        "{}",
        '{"mode": null, "query": null, "first": null, "page": null}',
        '{"first": 1, "last": 1000000000000000000000000000000}',
        '{"first": -1000000000000000000000000000000, "last": 2}',
        '{"query": "queen \\u0000"}',
        json.dumps({"query": "queen % _ \\ ' \""}),
        json.dumps({"query": " ".join(["queen", *[f"word{n}" for n in range(3000)]])}),
        json.dumps({"query": "queen " + "x" * 100_000}),
        '{"mode": "words", "query": "queen", "thread": "all", "unknown": 1}',
    ],
)
async def test_whatever_a_model_asks_for_gets_an_answer(deps, spoken, given):
    assert "queen" in await recall(deps, given=given)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"mode": "dream"}, "mode is 'dream', but it is one of: messages, threads, words."),
        ({"page": 99}, "page is '99', but it goes from -50 to 50"),
        ({"thread": "nonsense"}, "Only this conversation can be recalled"),
        ({"cursor": 77}, "Position '77' is outside this conversation"),
    ],
)
async def test_what_cannot_be_is_answered_in_a_sentence(deps, spoken, arguments, told):
    assert told in await recall(deps, **arguments)


async def test_no_other_resource_is_ever_recalled(deps, spoken):
    other = await Resource.objects.acreate(key="ben", name="Ben")
    secret = await Thread.objects.acreate(resource=other, agent="tester", title="Secret plans")
    await sync_to_async(say)(secret, question("Secret honey."))
    for arguments in (
        {"query": "honey secret"},
        {"query": "honey secret", "thread": "all"},
        {"query": "secret", "thread": str(secret.pk)},
        {"first": 1, "last": 100},
        {"mode": "threads"},
        {"thread": str(secret.pk)},
        {"thread": str(secret.pk), "cursor": 1, "part": 1},
    ):
        assert "Secret" not in await recall(deps, **arguments)


async def test_much_is_cut_to_two_thousand_tokens(deps, spoken):
    many = [question(f"honey {'and wax ' * 600}") for _ in range(30)]
    await sync_to_async(say)(spoken, *many)
    found = await recall(deps, query="honey")
    assert found.count("User (") == 20
    assert 1_500 < count(found) <= 2_000


async def test_several_recalls_at_once_do_not_disturb_each_other(deps, spoken):
    found = await asyncio.gather(*[recall(deps, first=n) for n in (1, 2, 3, 4)])
    assert [text.split("\n\n")[1][:3] for text in found] == ["[1]", "[2]", "[3]", "[4]"]
