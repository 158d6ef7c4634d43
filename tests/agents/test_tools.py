import asyncio
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async

from agents.tools import NOTHING_FOUND, TOOLS, Deps, current_time, recall, tools_named
from memory.models import Thread
from tests.memory.services.play import answer, question, say

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Context:
    """Stand where pydantic-ai's context of a run stands."""

    deps: Deps


@pytest.fixture
def context(thread):
    return Context(Deps(thread_id=thread.pk, zone=ZoneInfo("Europe/Berlin")))


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


def test_tools_are_found_by_name_and_unknown_names_left_out():
    assert tools_named(["recall", "fly", "current_time"]) == [recall, current_time]
    assert set(TOOLS) == {"recall", "current_time"}


async def test_the_time_is_told_in_the_users_zone(context):
    assert "(CE" in await current_time(context)


async def test_messages_are_recalled_word_for_word_with_number_and_speaker(context, spoken):
    found = await recall(context, query="queen")
    assert found == "[1] User (2026-03-02 10:00): The left hive has a new queen."


async def test_any_of_the_words_may_match_and_the_answers_are_in_order(context, spoken):
    found = await recall(context, query="jars QUEEN")
    assert [line[:3] for line in found.split("\n\n")] == ["[1]", "[3]"]


async def test_a_range_is_recalled_whole(context, spoken):
    found = await recall(context, first=2, last=3)
    assert [line[:3] for line in found.split("\n\n")] == ["[2]", "[3]"]
    assert "Assistant" in found


async def test_one_end_of_a_range_is_one_message(context, spoken):
    assert (await recall(context, first=2)).startswith("[2]")
    assert (await recall(context, last=3)).startswith("[3]")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": "a b"},
        {"query": "zeppelin"},
        {"first": 77},
        {"first": 3, "last": 2},
        {"first": -5, "last": -1},
    ],
)
async def test_what_matches_nothing_is_said_so(context, spoken, arguments):
    assert await recall(context, **arguments) == NOTHING_FOUND


@pytest.mark.parametrize(
    "arguments",
    [
        {"first": 1, "last": 10**30},
        {"first": -(10**30), "last": 2},
        {"query": "queen \x00"},
        {"query": "queen \ud83d\ud83d\ud83d"},
        {"query": "queen % _ \\ ' \""},
        {"query": " ".join(["queen", *[f"word{n}" for n in range(3000)]])},
        {"query": "queen " + "x" * 100_000},
    ],
)
async def test_whatever_a_model_asks_for_gets_an_answer(context, spoken, arguments):
    assert "queen" in await recall(context, **arguments)


async def test_no_other_conversation_is_ever_recalled(context, spoken, resource):
    other = await Thread.objects.acreate(resource=resource, agent="tester")
    await sync_to_async(say)(other, question("Secret honey."))
    assert "Secret" not in await recall(context, query="honey secret")
    assert "Secret" not in await recall(context, first=1, last=100)


async def test_a_long_message_is_cut_and_many_are_limited(context, spoken):
    many = [question(f"honey {'and wax ' * 600}") for _ in range(30)]
    await sync_to_async(say)(spoken, *many)
    found = (await recall(context, query="honey")).split("\n\n")
    assert len(found) == 20
    assert max(map(len, found)) < 4000


async def test_several_recalls_at_once_do_not_disturb_each_other(context, spoken):
    found = await asyncio.gather(*[recall(context, first=n) for n in (1, 2, 3, 4)])
    assert [text[:3] for text in found] == ["[1]", "[2]", "[3]", "[4]"]
