import pytest
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelContextWindowExceededError,
    ModelHTTPError,
)

from memory.overflow import bound_in, is_overflow

# What is sent with status 400, and the number of tokens it names.
REFUSALS = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages.",
        8192,
    ),
    ("prompt is too long: 204798 tokens > 200000 maximum", 200000),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 200000),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
    ),
    (
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
    ),
    ("Requested token count exceeds the model's maximum context length of 32,768 tokens.", 32768),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768", None),
    ("The model is loaded with context length of only 4096 tokens", 4096),
    ("Please reduce the length of the messages or completion.", None),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 200", 4096),
]


def refused(status, message, **body):
    return ModelHTTPError(status, "small", {"message": message, **body})


@pytest.mark.parametrize(("message", "bound"), REFUSALS)
def test_a_request_that_is_too_long_is_told_whoever_words_it(message, bound):
    error = refused(400, message)
    assert is_overflow(error)
    if bound is not None:
        assert bound_in(error) == bound


def test_a_code_says_it_without_words():
    assert is_overflow(refused(400, "no", code="context_length_exceeded"))
    assert is_overflow(refused(400, "no", type="exceed_context_size_error"))


def test_a_body_that_is_too_large_is_too_long_whatever_it_says():
    assert is_overflow(refused(413, "no"))


def test_what_the_library_recognised_itself_counts():
    assert is_overflow(ModelContextWindowExceededError("small", "too much"))


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_other_failures_are_none_though_they_speak_of_tokens(status):
    assert not is_overflow(refused(status, "maximum context length is 10 tokens"))


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value for 'temperature'",
        "messages with role 'tool' must follow a message with tool_calls",
        "max_tokens: must be at least 1",
        "Rate of tokens per minute is limited",
    ],
)
def test_other_refusals_are_none(message):
    assert not is_overflow(refused(400, message))


def test_a_program_that_fails_is_no_overflow():
    assert not is_overflow(ValueError("maximum context length is 10 tokens"))


def test_a_chain_of_models_is_too_long_when_one_of_them_says_so():
    errors = [refused(500, "boom"), refused(400, REFUSALS[0][0])]
    assert is_overflow(FallbackExceptionGroup("all failed", errors))


def test_a_refusal_without_a_number_names_no_bound():
    assert bound_in(refused(400, "Please reduce the length of the messages")) is None
