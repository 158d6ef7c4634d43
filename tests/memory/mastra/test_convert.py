from datetime import UTC, datetime

from pydantic_ai.messages import BinaryImage, ModelRequest, ModelResponse, ToolReturnPart

from memory.mastra.convert import messages_of
from memory.mastra.source import SourceMessage
from memory.messages import open_calls, plain_text

AT = datetime(2026, 1, 8, 12, tzinfo=UTC)
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def message(*parts, role="assistant"):
    return SourceMessage("1", "t", role, AT, parts)


def text(words):
    return {"type": "text", "text": words}


def call(state="result", **more):
    found = {"state": state, "toolCallId": "c1", "toolName": "look", "args": {"x": 1}, **more}
    return {"type": "tool-invocation", "toolInvocation": found}


def kinds(found):
    return [type(each).__name__ for each in found]


def test_a_prompt_keeps_its_words_and_files():
    (prompt,) = messages_of(
        message(
            text("Look."), {"type": "file", "data": PIXEL, "mimeType": "image/png"}, role="user"
        )
    )
    words, picture = prompt.parts[0].content
    assert words == "Look."
    assert isinstance(picture, BinaryImage)


def test_the_steps_of_an_answer_become_messages_in_order():
    found = messages_of(
        message(
            {"type": "reasoning", "reasoning": "Hm."},
            call(result={"state": "open"}),
            {"type": "step-start"},
            text("It is open."),
            {"type": "data-om-activation", "data": {}},
        )
    )
    assert kinds(found) == ["ModelResponse", "ModelRequest", "ModelResponse"]
    assert found[1].parts[0].content == {"state": "open"}
    assert plain_text(found[2]) == "It is open."


def test_steps_without_a_mark_between_them_are_told_apart():
    found = messages_of(message(call(result=1), text("One.")))
    assert kinds(found) == ["ModelResponse", "ModelRequest", "ModelResponse"]


def test_a_call_without_a_result_is_answered_as_interrupted():
    found = messages_of(message(call(state="call")))
    assert open_calls(found) == []
    assert isinstance(found[1], ModelRequest)
    assert isinstance(found[1].parts[0], ToolReturnPart)


def test_what_says_nothing_to_a_model_is_no_message():
    assert messages_of(message({"type": "data-om-buffering-start", "data": {}})) == []
    assert messages_of(message(text(" "), role="user")) == []
    assert messages_of(message(text("Be brief."), role="system")) == []


def test_answers_are_responses():
    (answer,) = messages_of(message(text("Yes.")))
    assert isinstance(answer, ModelResponse)
    assert answer.timestamp == AT
