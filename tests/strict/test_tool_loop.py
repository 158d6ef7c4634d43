"""A long loop of tools with large results, on somebody's agent and behind the server's page."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ToolCallPart, ToolReturnPart

from agents.services.send import send
from agents.services.turn import run_turns, stop
from memory import ObservationalMemory, settled
from memory.dispatch import NoDispatcher, cycles
from memory.models import Line, Message
from memory.services.due import run_due
from tests.fakes import user_texts
from tests.memory.services import play
from tests.strict.model import Strict, page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("settles")]

STEPS = 40
QUESTION = "Which customer in Leipzig spent most this year?"
SMALL = {"message_tokens": 3000, "observation_tokens": 2000}


@pytest.fixture(autouse=True)
def _own_dispatcher():
    before = cycles.use(NoDispatcher())
    yield
    cycles.use(before)


@pytest.fixture(autouse=True)
def _models(settings):
    settings.MEMORY_MODELS = {"observer": "agent", "reflector": "agent"}
    settings.ACTOR_MODEL = "agent"


def remembering(strict, *, thread="orders", options=SMALL, **given):
    agent = Agent(
        strict("strict"),
        instructions="Be brief.",
        capabilities=[ObservationalMemory(thread, options=options, **given)],
        retries=3,
    )

    @agent.tool_plain
    async def fetch(number: int, tokens: int = 2000) -> str:
        """Fetch a page of orders."""
        await asyncio.sleep(0)
        if number < 0:
            raise ModelRetry("There is no such page.")
        return page(number, tokens)

    return agent


def loop(steps=STEPS):
    return [[("fetch", {"number": n, "tokens": 800 + n % 4 * 800})] for n in range(steps - 1)]


def results_of(message):
    return [p.tool_call_id for p in message.parts if isinstance(p, ToolReturnPart)]


def holds_question_and_last_step(requests, question=QUESTION):
    """Tell of each request of a run that it holds its question and what its last step brought."""
    for number, request in enumerate(requests):
        assert sum(question in text for text in user_texts(request)) == 1, number
        if number:
            assert results_of(request[-1]), number
            calls = [p.tool_call_id for p in request[-2].parts if isinstance(p, ToolCallPart)]
            assert sorted(calls) == sorted(results_of(request[-1])), number


@sync_to_async
def lines():
    return Line.objects.filter(since__isnull=False).count()


@pytest.mark.parametrize("options", [SMALL, {**SMALL, "buffer_tokens": False}])
@pytest.mark.parametrize("scope", ["thread", "resource"])
async def test_forty_steps_keep_question_and_last_step_in_every_request(db, options, scope):
    strict = Strict(*loop())
    agent = remembering(strict, options=options, resource="ada", scope=scope)
    result = await agent.run(QUESTION)
    await settled()

    assert result.output == "Done."
    assert (strict.violations, len(strict.requests)) == ([], STEPS)
    holds_question_and_last_step(strict.requests)
    assert await lines() > 0
    assert await Message.objects.acount() == 2 * STEPS


async def test_the_request_stays_small_however_long_the_loop(db):
    strict = Strict(*loop())
    await remembering(strict).run(QUESTION)
    sizes = [len(request) for request in strict.requests]
    assert max(sizes) < STEPS


@pytest.mark.parametrize("options", [SMALL, {**SMALL, "buffer_tokens": False}])
async def test_a_first_result_over_the_ceiling_is_seen_before_it_is_observed(db, options):
    steps = [[("fetch", {"number": n, "tokens": 3600})] for n in range(6)]
    strict = Strict(*steps)
    await remembering(strict, options=options).run(QUESTION)
    assert strict.violations == []
    holds_question_and_last_step(strict.requests)


async def test_parallel_calls_and_retries_keep_their_pairs(db):
    steps = []
    for n in range(12):
        good = ("fetch", {"number": n, "tokens": 1000})
        steps.append([good, ("fetch", {"number": -1}), good] if n % 3 == 0 else [good, good])
    steps.insert(4, [("fly", {})])
    steps.insert(9, [("fetch", {"number": "many"})])
    strict = Strict(*steps)
    await remembering(strict).run(QUESTION)
    assert strict.violations == []
    holds_question_and_last_step(strict.requests)
    assert await lines() > 0


async def test_a_run_that_fails_in_a_tool_leaves_a_thread_that_goes_on(db):
    strict = Strict([("fetch", {"number": 1})], [("fetch", {"number": 2}), ("boom", {})])
    agent = remembering(strict)

    @agent.tool_plain
    def boom() -> str:
        """Fail."""
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        await agent.run(QUESTION)
    await agent.run("And now?")
    assert strict.violations == []
    assert any("And now?" in text for text in user_texts(strict.requests[-1]))
    assert any(QUESTION in text for text in user_texts(strict.requests[-1]))


async def test_a_cancelled_run_leaves_a_thread_that_goes_on(db):
    strict = Strict([("fetch", {"number": 1})], ["Wait. ", ("rest", {})])
    agent = remembering(strict)
    reached = asyncio.Event()

    @agent.tool_plain
    async def rest() -> str:
        """Rest."""
        reached.set()
        await asyncio.sleep(60)

    work = asyncio.create_task(agent.run(QUESTION))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await agent.run("And now?")
    assert strict.violations == []
    await settled()


async def server_turn(thread, strict, prompt):
    await sync_to_async(send)(thread.pk, prompt)
    await run_turns(thread.pk, resolve=strict)


@pytest.mark.parametrize("buffer", [0.2, False])
async def test_turns_of_the_server_that_stop_and_fail_are_followed_by_others(
    thread, profile, buffer
):
    profile.memory_options = {**SMALL, "buffer_tokens": buffer}
    await profile.asave()
    await sync_to_async(fill)(thread)
    recall = ("recall", {"first": 1, "last": 40})
    strict = Strict(*[["Let me look.", recall, ("current_time", {})] for _ in range(5)])
    await server_turn(thread, strict, QUESTION)

    strict.steps = [[recall], ["I was", RuntimeError("boom")]]
    await server_turn(thread, strict, "Second?")

    strict.steps = [[recall], lambda messages: [recall, ("fly", {})], *[[recall]] * 3]
    await server_turn(thread, strict, "Third?")
    before = len(strict.requests)
    work = asyncio.create_task(server_turn(thread, strict, "Fourth?"))
    strict.steps = [[recall] for _ in range(40)]
    async with asyncio.timeout(20):
        while len(strict.requests) < before + 3:
            await asyncio.sleep(0)
    await sync_to_async(stop)(thread.pk)
    await work
    strict.steps = []
    await server_turn(thread, strict, "Fifth?")
    await run_due(thread.pk, resolve=strict)
    await server_turn(thread, strict, "Sixth?")
    assert strict.violations == []
    assert any("Sixth?" in text for text in user_texts(strict.requests[-1]))
    assert await lines() > 0


def fill(thread):
    play.talk(thread, 12, tokens=100)
