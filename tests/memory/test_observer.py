import asyncio
from dataclasses import replace
from datetime import UTC
from decimal import Decimal

import pytest
from pydantic_ai.exceptions import OutputTokenLimitExceeded
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from memory.engine.parsing import DegenerateOutput, EmptyOutput, UnparsableOutput
from memory.engine.values import (
    Attachment,
    LineKind,
    ObserverRequest,
    SectionNumbers,
    WrittenLine,
)
from memory.llm import explain
from memory.observer import Reply, observe, observe_many, reply_of

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

    def __init__(self, *answers, cut=()):
        self.answers = list(answers)
        self.cut = list(cut)
        self.asked = []
        self.model = FunctionModel(self.answer, model_name="scripted")

    def answer(self, messages, info):
        self.asked.append((messages, info))
        parts = self.answers.pop(0)
        usage = RequestUsage(input_tokens=100, output_tokens=20, cost=Decimal("0.25"))
        return ModelResponse(
            parts=[TextPart(parts)] if isinstance(parts, str) else parts,
            usage=usage,
            finish_reason="length" if self.cut and self.cut.pop(0) else "stop",
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
    told = second[0][0].parts[0].content
    assert told[:-1] == first[0][0].parts[0].content == list(REQUEST.prompt)
    assert told[-1].startswith("<instructions>\nYour first reply repeats itself in 98% of its text")


@pytest.mark.asyncio
async def test_two_degenerate_replies_are_a_failure_that_carries_what_they_took():
    scripted = Scripted(DEGENERATE, DEGENERATE)
    error = await failure(scripted, DegenerateOutput)
    assert error.reply == Reply(DEGENERATE, "scripted", 200, 40, Decimal("0.50"))
    assert len(scripted.asked) == 2


CUT = "<observations>\nDate: May 8, 2023\n* 🔴 User adopted a dog [#1]\n* 🟡 User li"


@pytest.mark.asyncio
async def test_a_reply_cut_off_is_asked_for_once_more_with_the_reason():
    scripted = Scripted(CUT, SOUND, cut=[True, False])
    result = await observed(scripted)
    assert result.output.current_task == "Find a vet"
    assert (result.reply.output_tokens, result.reply.cut) == (40, False)
    told = scripted.asked[1][0][0].parts[0].content[-1]
    assert "was cut off at the limit of its length" in told
    assert "half as long" in told


@pytest.mark.asyncio
async def test_what_can_be_read_of_a_reply_cut_off_twice_counts():
    result = await observed(Scripted(CUT, CUT, cut=[True, True]))
    assert [line.text for line in result.output.lines] == ["User adopted a dog", "User li"]
    assert result.reply.cut


@pytest.mark.asyncio
@pytest.mark.parametrize("second", ["", DEGENERATE, "I cannot."])
async def test_a_readable_first_reply_outlives_a_second_that_is_not(second):
    result = await observed(Scripted(CUT, second, cut=[True, False]))
    assert len(result.output.lines) == 2
    assert result.reply.output_tokens == 40


@pytest.mark.asyncio
async def test_observations_that_were_complete_when_the_reply_was_cut_off_are_enough():
    scripted = Scripted(SOUND[:-10], cut=[True])
    assert len((await observed(scripted)).output.lines) == 1
    assert len(scripted.asked) == 1


@pytest.mark.asyncio
async def test_a_model_that_reached_its_limit_without_a_word_is_asked_once_more():
    asked = []

    def answer(messages, info):
        asked.append(messages)
        if len(asked) == 1:
            raise OutputTokenLimitExceeded("too long")
        return ModelResponse(parts=[TextPart(SOUND)])

    result = await observe(REQUEST, model=FunctionModel(answer), tz=UTC)
    assert len(result.output.lines) == 1
    assert "cut off" in asked[1][0].parts[0].content[-1]


@pytest.mark.asyncio
async def test_media_goes_where_the_request_says():
    picture, page = (
        BinaryContent(b"1", media_type="image/png"),
        BinaryContent(b"2", media_type="a/b"),
    )
    request = replace(
        REQUEST,
        prompt=("a", "b", "c"),
        attachments=(Attachment(0, "k1"), Attachment(0, "gone"), Attachment(1, "k2")),
    )
    scripted = Scripted(SOUND)
    await observe(request, model=scripted.model, tz=UTC, media={"k1": picture, "k2": page})
    assert scripted.asked[0][0][0].parts[0].content == ["a", picture, "b", page, "c"]


@pytest.mark.asyncio
async def test_hints_nobody_wants_are_dropped_and_further_texts_kept():
    reply = f"{SOUND}\n<mood>\ncheerful\n</mood>"
    request = replace(REQUEST, wanted=(), extract=("mood",))
    result = await observe(request, model=Scripted(reply).model, tz=UTC)
    assert result.output.current_task == ""
    assert result.output.extracted == {"mood": "cheerful"}


MANY = replace(
    REQUEST,
    sections=(SectionNumbers("a", {1: 40}), SectionNumbers("b", {2: 7}), SectionNumbers("c", {})),
)


@pytest.mark.asyncio
async def test_several_threads_are_observed_in_one_call():
    reply = (
        '<observations>\n<thread id="b">\n* 🔴 B [#2]\n</thread>\n'
        '<thread id="a">\n(none)\n</thread>\n</observations>'
    )
    result = await observe_many(MANY, model=Scripted(reply).model, tz=UTC)
    a, b, c = result.outputs
    assert (a.lines, c.lines) == ((), ())
    assert [line.text for line in b.lines] == ["B"]
    assert result.reply.input_tokens == 100


@pytest.mark.asyncio
async def test_a_thread_left_out_fails_alone():
    reply = '<observations>\n<thread id="a">\n* 🔴 A [#1]\n</thread>\n</observations>'
    result = await observe_many(MANY, model=Scripted(reply).model, tz=UTC)
    assert [output is None for output in result.outputs] == [False, True, False]


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
