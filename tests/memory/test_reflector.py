from datetime import UTC

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from memory.engine.parsing import DegenerateOutput, EmptyOutput, UnparsableOutput
from memory.engine.values import Line, LineKind, ReflectorRequest
from memory.reflector import reflect, reply_of

SOUND = """<observations>
Date: May 8, 2023
* 🔴 User has a dog named Rex [#1-2]
* 🟡 User walks in the evening [#7]
</observations>"""
NUMBERS = {n: Line(n, 1, LineKind.HIGH, f"line {n}", 5) for n in (1, 2)}
REQUEST = ReflectorRequest(
    "You are the Reflector.\nCondense.", ("<lines/>", "Write."), 400, 1, NUMBERS
)


def saying(*answers):
    waiting, asked = list(answers), []

    def answer(messages, info):
        asked.append(messages)
        usage = RequestUsage(input_tokens=10, output_tokens=5)
        return ModelResponse(parts=[TextPart(waiting.pop(0))], usage=usage)

    return FunctionModel(answer, model_name="scripted"), asked


@pytest.mark.asyncio
async def test_a_sound_reply_becomes_lines_that_cite_lines():
    model, asked = saying(SOUND)
    result = await reflect(REQUEST, model=model, tz=UTC)
    assert [(line.text, line.cites) for line in result.output.lines] == [
        ("User has a dog named Rex", (1, 2)),
        ("User walks in the evening", ()),
    ]
    assert (result.reply.text, result.reply.model) == (SOUND, "scripted")
    assert (result.reply.input_tokens, result.reply.output_tokens) == (10, 5)
    ((request,),) = asked
    assert request.instructions == REQUEST.instructions
    assert request.parts[0].content == list(REQUEST.prompt)


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", ["", "<observations>(none)</observations>"])
async def test_a_reflection_that_would_leave_nothing_is_a_failure(answer):
    model, _ = saying(answer)
    with pytest.raises(EmptyOutput) as raised:
        await reflect(REQUEST, model=model, tz=UTC)
    assert reply_of(raised.value).text == answer


@pytest.mark.asyncio
async def test_a_degenerate_reply_is_asked_for_once_more_only():
    endless = "User has a dog named Rex and two cats.\n" * 200
    model, asked = saying(endless, endless, SOUND)
    with pytest.raises(DegenerateOutput) as raised:
        await reflect(REQUEST, model=model, tz=UTC)
    assert len(asked) == 2
    assert reply_of(raised.value).output_tokens == 10


@pytest.mark.asyncio
async def test_a_reflection_that_is_cut_off_twice_is_a_failure():
    asked = []

    def answer(messages, info):
        asked.append(messages)
        text = SOUND.removesuffix("</observations>")
        return ModelResponse(parts=[TextPart(text)], finish_reason="length")

    with pytest.raises(UnparsableOutput, match="was cut off at the limit of its length") as raised:
        await reflect(REQUEST, model=FunctionModel(answer), tz=UTC)
    assert len(asked) == 2
    assert reply_of(raised.value).cut
