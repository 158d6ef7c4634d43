import asyncio
from datetime import UTC
from decimal import Decimal

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from memory.engine.parsing import DegenerateOutput, EmptyOutput, UnparsableOutput
from memory.engine.values import LineKind, ObserverRequest, WrittenLine
from memory.llm import explain
from memory.observer import Reply, observe, reply_of

SOUND = """<observations>
Date: May 8, 2023
* 🔴 User adopted a dog named Rex [#1,2]
</observations>
<current-task>Find a vet</current-task>"""
DEGENERATE = "The dog is called Rex and likes long walks.\n" * 200
REQUEST = ObserverRequest(
    "You are the Observer.\nObserve.", ("<conversation/>", "Write."), {1: 40, 2: 41}
)


class Scripted:
    """Answer with one text after the other, and keep what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.model = FunctionModel(self.answer, model_name="scripted")

    def answer(self, messages, info):
        self.asked.append((messages, info))
        parts = self.answers.pop(0)
        usage = RequestUsage(input_tokens=100, output_tokens=20, cost=Decimal("0.25"))
        return ModelResponse(
            parts=[TextPart(parts)] if isinstance(parts, str) else parts,
            usage=usage,
        )


async def observed(scripted, **settings):
    return await observe(REQUEST, model=scripted.model, tz=UTC, **settings)


async def failure(scripted, kind):
    with pytest.raises(kind) as raised:
        await observed(scripted)
    return raised.value


@pytest.mark.asyncio
async def test_a_sound_reply_becomes_lines_hints_and_a_bill():
    result = await observed(Scripted(SOUND))
    (line,) = result.output.lines
    assert line == WrittenLine(
        LineKind.HIGH, "User adopted a dog named Rex", line.said_at, cites=(1, 2)
    )
    assert result.output.current_task == "Find a vet"
    assert result.reply == Reply(SOUND, "scripted", 100, 20, Decimal("0.25"))


@pytest.mark.asyncio
async def test_the_model_gets_the_instructions_and_one_user_message():
    scripted = Scripted(SOUND)
    await observed(scripted, settings=ModelSettings(max_tokens=99))
    (((request,), info),) = scripted.asked
    assert isinstance(request, ModelRequest)
    assert request.instructions == REQUEST.instructions
    (prompt,) = request.parts
    assert prompt.content == list(REQUEST.prompt)
    assert info.function_tools == info.output_tools == []
    assert info.model_settings["max_tokens"] == 99


@pytest.mark.asyncio
async def test_citations_of_numbers_that_were_not_printed_are_dropped():
    result = await observed(Scripted(SOUND.replace("#1,2", "#2,99")))
    assert result.output.lines[0].cites == (2,)


@pytest.mark.asyncio
async def test_nothing_worth_keeping_is_a_result():
    result = await observed(Scripted("<observations>(none)</observations>"))
    assert result.output.lines == ()


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", ["", "  \n ", [], [ThinkingPart("Hm.")]])
async def test_a_reply_without_text_is_empty_output_after_one_request(answer):
    scripted = Scripted(answer)
    error = await failure(scripted, EmptyOutput)
    assert reply_of(error).input_tokens == 100
    assert len(scripted.asked) == 1


@pytest.mark.asyncio
async def test_a_reply_in_prose_is_unparsable_and_carried_by_the_failure():
    error = await failure(Scripted("I would rather talk about dogs."), UnparsableOutput)
    assert error.reply.text == "I would rather talk about dogs."
    assert explain(error).startswith("The reply")


@pytest.mark.asyncio
async def test_a_degenerate_reply_is_asked_for_once_more_and_both_are_paid():
    scripted = Scripted(DEGENERATE, SOUND)
    result = await observed(scripted)
    assert len(result.output.lines) == 1
    assert result.reply == Reply(SOUND, "scripted", 200, 40, Decimal("0.50"))
    first, second = scripted.asked
    assert [m.parts[0].content for m in first[0]] == [m.parts[0].content for m in second[0]]


@pytest.mark.asyncio
async def test_two_degenerate_replies_are_a_failure_that_carries_what_they_took():
    scripted = Scripted(DEGENERATE, DEGENERATE)
    error = await failure(scripted, DegenerateOutput)
    assert error.reply == Reply(DEGENERATE, "scripted", 200, 40, Decimal("0.50"))
    assert len(scripted.asked) == 2


@pytest.mark.asyncio
async def test_a_second_reply_fails_by_its_own_name():
    await failure(Scripted(DEGENERATE, ""), EmptyOutput)


@pytest.mark.asyncio
async def test_a_model_without_a_known_price_costs_none():
    model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(SOUND)]))
    result = await observe(REQUEST, model=model, tz=UTC)
    assert result.reply.cost is None


@pytest.mark.asyncio
async def test_a_model_that_takes_too_long_is_given_up():
    async def hang(messages, info):
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await observe(REQUEST, model=FunctionModel(hang), tz=UTC, timeout=0.05)


@pytest.mark.asyncio
async def test_what_the_model_raises_comes_through():
    def fail(messages, info):
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError) as raised:
        await observe(REQUEST, model=FunctionModel(fail), tz=UTC)
    assert reply_of(raised.value) is None
