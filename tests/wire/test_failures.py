"""Failures as each provider really sends them, told to people in one sentence."""

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.settings import ModelSettings

from memory.llm import LONGEST_SENTENCE, explain, is_transient
from tests.wire.dialects import KEY
from tests.wire.server import Cut, Hang, Refuse, Say

ONCE = ModelSettings(max_retries=0, timeout=5)
LONG = Say(tuple(f"piece {number} " for number in range(40)))


async def failure_of(model, settings=ONCE):
    """Return what a streamed chat raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        await chat(model, settings)
    return raised.value


async def chat(model, settings):
    async with Agent(model).run_stream_events("hello", model_settings=settings) as stream:
        return [event async for event in stream]


def assert_fit_for_people(sentence):
    assert 20 < len(sentence) <= LONGEST_SENTENCE
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert KEY not in sentence
    assert "Traceback" not in sentence


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "says", "transient"),
    [
        (401, "refused the key", False),
        (429, "limits how often", True),
        (500, "failed (HTTP 500", True),
    ],
)
async def test_a_refusal_is_one_sentence_that_names_the_model(
    open_wire, dialect, status, says, transient
):
    _, model = open_wire(Refuse(status))
    error = await failure_of(model)
    sentence = explain(error)
    assert_fit_for_people(sentence)
    assert says in sentence
    assert f"“{dialect.model}”" in sentence
    assert f"HTTP {status}" in sentence
    assert is_transient(error) is transient


@pytest.mark.asyncio
async def test_a_provider_that_never_answers_took_too_long(open_wire, dialect):
    _, model = open_wire(Hang())
    error = await failure_of(model, ModelSettings(max_retries=0, timeout=0.2))
    sentence = explain(error)
    assert_fit_for_people(sentence)
    assert "took too long" in sentence
    assert is_transient(error)


@pytest.mark.asyncio
async def test_a_bound_of_the_caller_took_too_long(open_wire):
    _, model = open_wire(Hang())
    with pytest.raises(TimeoutError) as raised:
        async with asyncio.timeout(0.2):
            await Agent(model).run("hello", model_settings=ONCE)
    assert "took too long" in explain(raised.value)
    assert is_transient(raised.value)


@pytest.mark.asyncio
async def test_a_stream_that_is_cut_broke_off_during_the_answer(open_wire):
    _, model = open_wire(Cut(LONG))
    error = await failure_of(model)
    sentence = explain(error)
    assert_fit_for_people(sentence)
    assert "broke off during its answer" in sentence
    assert is_transient(error)


@pytest.mark.asyncio
async def test_a_server_that_is_gone_does_not_answer_at_its_address(open_wire):
    wire, model = open_wire()
    wire.close()
    error = await failure_of(model)
    sentence = explain(error)
    assert_fit_for_people(sentence)
    assert "Nothing answers" in sentence
    assert is_transient(error)
