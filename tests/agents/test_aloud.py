import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

from agents.aloud import Aloud
from memory.llm import explain


async def said(silence, *, hangs):
    async def stream(messages, info):
        yield "Hel"
        if hangs:
            await asyncio.Event().wait()
        yield "lo"

    heard = []

    async def hear(event):
        heard.append(event)

    model = Aloud(FunctionModel(stream_function=stream), hear, silence=silence)
    try:
        return (await Agent(model).run("Hi")).output, heard
    except TimeoutError as error:
        return explain(error), heard


async def test_a_model_that_falls_silent_took_too_long():
    sentence, heard = await asyncio.wait_for(said(0.05, hangs=True), 10)
    assert "took too long" in sentence
    assert heard


@pytest.mark.parametrize("silence", [0, 10])
async def test_one_that_goes_on_is_heard_to_the_end(silence):
    sentence, _ = await said(silence, hangs=False)
    assert sentence == "Hello"
