import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from memory.providers import bounded, provider_of


class Crowd:
    """Answer when told to, and note how many calls are under way."""

    def __init__(self):
        self.now = self.most = 0
        self.go = asyncio.Event()

    async def _hold(self):
        self.now += 1
        self.most = max(self.most, self.now)
        await self.go.wait()
        self.now -= 1

    async def answer(self, messages, info):
        await self._hold()
        return ModelResponse(parts=[TextPart("Yes.")])

    async def stream(self, messages, info):
        await self._hold()
        yield "Yes."

    def model(self, name, most, **where):
        model = FunctionModel(self.answer, stream_function=self.stream)
        return bounded(name, model, most, **where)


async def said(model, *, streamed=False):
    if not streamed:
        return (await Agent(model).run("Well?")).output
    async with Agent(model).run_stream("Well?") as answer:
        return await answer.get_output()


async def under_way(crowd, calls):
    tasks = [asyncio.create_task(call) for call in calls]
    for _ in range(200):
        await asyncio.sleep(0)
    held = crowd.now
    crowd.go.set()
    assert await asyncio.gather(*tasks) == ["Yes."] * len(tasks)
    return held


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_of_one_provider_wait_for_each_other_whatever_the_model(streamed):
    crowd = Crowd()
    one, other = crowd.model(f"here{streamed}:a", 3), crowd.model(f"here{streamed}:b", 3)
    calls = [said(model, streamed=streamed) for model in (one, other) * 4]
    assert await under_way(crowd, calls) == 3
    assert crowd.most == 3


async def test_another_provider_has_slots_of_its_own():
    crowd = Crowd()
    models = [crowd.model("p:a", 2), crowd.model("q:a", 2)]
    assert await under_way(crowd, [said(model) for model in models * 4]) == 4


async def test_a_call_that_is_given_up_gives_its_slot_back():
    crowd = Crowd()
    model = crowd.model("given-up:a", 1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await said(model)
    crowd.go.set()
    async with asyncio.timeout(5):
        assert await said(model) == "Yes."


@pytest.mark.parametrize(("name", "most"), [("free:a", 0), ("offline", 1)])
async def test_without_a_limit_nothing_waits(name, most):
    crowd = Crowd()
    model = crowd.model(name, most)
    assert await under_way(crowd, [said(model) for _ in range(6)]) == 6


def test_servers_of_ones_own_are_told_apart_by_their_address():
    first = provider_of("openai-compatible:m@http://one/v1")
    assert first != provider_of("openai-compatible:m@http://two/v1")
    assert first == provider_of("openai-compatible:n@http://one/v1")
    assert first == provider_of("openai-compatible:m", "http://one/v1")
    assert provider_of("openai:a") == provider_of("openai:b") != provider_of("anthropic:a")
