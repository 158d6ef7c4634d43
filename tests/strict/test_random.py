"""Random conversations: whatever runs do, no provider would refuse what the next one is sent."""

import asyncio
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, ModelRetry

from memory import ObservationalMemory, settled
from memory.dispatch import NoDispatcher, cycles
from memory.messages import load, open_calls
from memory.models import Message, Thread
from tests.fakes import user_texts
from tests.strict.model import Strict, page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("settles")]

CALLS = st.sampled_from(
    [
        ("fetch", {"number": 1, "tokens": 100}),
        ("fetch", {"number": 2, "tokens": 900}),
        ("fetch", {"number": 3, "tokens": 2500}),
        ("fetch", {"number": -1}),
        ("fetch", {"number": "many"}),
        ("fly", {}),
        ("recall", {"first": 1, "last": 9}),
    ]
)
STEPS = st.lists(
    st.tuples(st.booleans(), st.lists(CALLS, min_size=1, max_size=3)).map(
        lambda step: [*(["Let me look."] if step[0] else []), *step[1]]
    ),
    max_size=6,
)
ENDS = st.sampled_from(["done", "done", "done", "model fails", "tool fails", "cancelled"])
TURNS = st.lists(st.tuples(STEPS, ENDS, st.booleans()), min_size=2, max_size=5)
OPTIONS = st.fixed_dictionaries(
    {
        "message_tokens": st.sampled_from([500, 1500, 3000]),
        "observation_tokens": st.sampled_from([200, 2000]),
        "buffer_tokens": st.sampled_from([0.2, 0.5, False]),
        "retrieval": st.booleans(),
        "wait_seconds": st.sampled_from([0, 5]),
    }
)
LIFE = st.tuples(TURNS, OPTIONS, st.sampled_from(["thread", "resource"]))


@pytest.fixture(autouse=True)
def _as_a_program_of_its_own(settings):
    settings.MEMORY_MODELS = {"observer": "agent", "reflector": "agent"}
    settings.ACTOR_MODEL = "agent"
    before = cycles.use(NoDispatcher())
    yield
    cycles.use(before)


def agent_of(strict, memory, reached):
    agent = Agent(strict("strict"), capabilities=[memory], retries=2)

    @agent.tool_plain
    def fetch(number: int, tokens: int = 100) -> str:
        """Fetch a page."""
        if number < 0:
            raise ModelRetry("There is no such page.")
        return page(number, tokens)

    @agent.tool_plain
    def boom() -> str:
        """Fail."""
        raise RuntimeError("boom")

    @agent.tool_plain
    async def rest() -> str:
        """Rest."""
        reached.set()
        await asyncio.sleep(60)

    return agent


LAST = {
    "model fails": [["I was", RuntimeError("boom")]],
    "tool fails": [[("fetch", {"number": 1}), ("boom", {})]],
    "cancelled": [["Wait.", ("rest", {}), ("fetch", {"number": 1})]],
}


async def turn(strict, memory, number, steps, end, streams):
    """Run one prompt to the end it is to have, or the one it comes to."""
    reached = asyncio.Event()
    agent = agent_of(strict, memory, reached)
    strict.steps = [*steps, *LAST.get(end, [])]
    work = asyncio.create_task(run(agent, f"Question {number}?", streams))
    waiting = asyncio.create_task(reached.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    work.cancel()
    waiting.cancel()
    await asyncio.gather(work, waiting, return_exceptions=True)


async def run(agent, prompt, streams):
    if not streams:
        await agent.run(prompt)
        return
    async with agent.run_stream_events(prompt) as events:
        async for _ in events:
            pass


async def live(life):
    turns, options, scope = life
    resource = f"r{uuid4().hex}"
    strict = Strict()
    for number, (steps, end, streams) in enumerate(turns):
        key = "other" if scope == "resource" and number % 3 == 2 else "one"
        memory = ObservationalMemory(key, resource=resource, scope=scope, options=options)
        asked = len(strict.requests)
        await turn(strict, memory, number, steps, end, streams)
        for request in strict.requests[asked:]:
            assert sum(f"Question {number}?" in text for text in user_texts(request)[-40:]) >= 1
    await settled()
    assert strict.violations == []
    async for thread in Thread.objects.filter(resource__key=resource):
        rows = Message.objects.filter(thread=thread).order_by("position")
        stored = [load(m.payload) async for m in rows]
        assert open_calls(stored) == []
        questions = [t for t in user_texts(stored) if t.startswith("Question")]
        assert len(questions) == len(set(questions))


SHARED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=5, derandomize=True, **SHARED)
@given(LIFE)
async def test_a_few_random_conversations(life):
    await live(life)


@pytest.mark.slow
@settings(max_examples=80, **SHARED)
@given(LIFE)
async def test_many_random_conversations(life):
    await live(life)
