import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from tests.strict.rules import Violation, anthropic, check, google, openai


def user(text="Hello"):
    return ModelRequest(parts=[UserPromptPart(text)])


def said(text="Yes."):
    return ModelResponse(parts=[TextPart(text)])


def calls(*ids):
    return ModelResponse(parts=[ToolCallPart("look", {}, i) for i in ids])


def results(*ids):
    return ModelRequest(parts=[ToolReturnPart("look", "A hive.", i) for i in ids])


def retry(call):
    return ModelRequest(parts=[ToolReturnPart("look", "No.", call, outcome="retried")])


LEGAL = {
    "a question": [user()],
    "a system prompt first": [ModelRequest(parts=[SystemPromptPart("Be brief.")]), user()],
    "memory before the question": [user("<memory>"), user()],
    "a conversation": [user(), said(), user()],
    "a tool": [user(), calls("a"), results("a")],
    "parallel calls": [user(), calls("a", "b"), results("b", "a"), said(), user()],
    "results in two messages": [user(), calls("a", "b"), results("a"), results("b")],
    "a retry as a result": [user(), calls("a"), retry("a"), calls("b"), results("b")],
    "a result and a question": [user(), calls("a"), results("a"), user()],
    "two answers in a row": [user(), said("I was"), said("Again."), user()],
}
ILLEGAL = {
    "no result": [user(), calls("a")],
    "a question before the result": [user(), calls("a"), user(), results("a")],
    "a result without a call": [user(), said(), results("a")],
    "a result without a call, first": [results("a"), user()],
    "half of the results": [user(), calls("a", "b"), results("a"), user()],
    "a result twice": [user(), calls("a"), results("a", "a")],
    "a result too late": [user(), calls("a"), results("a"), said(), results("a")],
}


@pytest.mark.parametrize("messages", LEGAL.values(), ids=LEGAL)
def test_what_providers_take_passes(messages):
    check(messages)


@pytest.mark.parametrize("rules", [openai, anthropic, google])
@pytest.mark.parametrize("messages", ILLEGAL.values(), ids=ILLEGAL)
def test_pairs_that_are_broken_are_refused_by_each(messages, rules):
    with pytest.raises(Violation):
        rules(messages)


@pytest.mark.parametrize("rules", [anthropic, google])
@pytest.mark.parametrize("messages", [[], [said(), user()], [user(), said()]])
def test_a_request_that_does_not_begin_and_end_with_the_user_is_refused(messages, rules):
    with pytest.raises(Violation):
        rules(messages)


def test_results_after_a_text_are_refused():
    mixed = ModelRequest(parts=[UserPromptPart("So?"), ToolReturnPart("look", "A hive.", "a")])
    for rules in (openai, anthropic):
        with pytest.raises(Violation):
            rules([user(), calls("a"), mixed])


def test_a_message_without_a_piece_is_refused():
    with pytest.raises(Violation):
        openai([user(), ModelResponse(parts=[]), user()])
