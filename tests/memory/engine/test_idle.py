import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.idle import cache_lifetime, pause_of, read_idle

MINUTES, HOURS = 60, 3600


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5m", 300),
        ("1hr", 3600),
        ("90 s", 90),
        ("1.5h", 5400),
        ("2 Hours", 7200),
        ("10 mins", 600),
        ("1 minute", 60),
        (".5m", 30),
        ("250 ms", 0.25),
        ("30secs", 30),
        ("1 second", 1),
        (" 3 milliseconds ", 0.003),
        (0, 0),
        (12.5, 12.5),
        (False, False),
        ("auto", "auto"),
        ("AUTO", "auto"),
    ],
)
def test_a_pause_is_read_as_seconds(value, seconds):
    found = read_idle(value)
    assert found == seconds
    assert (found is False) == (value is False)


@pytest.mark.parametrize(
    "value",
    ["abc", "", "5", "-5m", "5 parsecs", "5m 3s", -1, float("nan"), float("inf"), True, None, [5]],
)
def test_what_is_no_pause_is_refused_with_the_rule(value):
    with pytest.raises(ValueError, match="seconds, a duration like"):
        read_idle(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "name a provider"),
        ({"openai": "soon"}, "openai = 'soon': must be seconds"),
        ({"default": -2}, "default = -2: must be seconds"),
        ({7: "5m"}, "names of providers"),
    ],
)
def test_a_wrong_value_for_a_provider_is_named(value, said):
    with pytest.raises(ValueError, match=said):
        read_idle(value)


@pytest.mark.parametrize(
    ("model", "seconds"),
    [
        ("openai:gpt-4.1", 5 * MINUTES),
        ("openai:gpt-4o", 5 * MINUTES),
        ("openai:gpt-5", 5 * MINUTES),
        ("openai:gpt-5-mini", 5 * MINUTES),
        ("openai:gpt-5.4-pro", 5 * MINUTES),
        ("openai-chat:gpt-5.1", 5 * MINUTES),
        ("openai:gpt-5.5", HOURS),
        ("openai:gpt-5.40", HOURS),
        ("openai:gpt-6", HOURS),
        ("openai:o3", HOURS),
        ("openai", HOURS),
        ("google:gemini-2.5-flash", 24 * HOURS),
        ("google-cloud:gemini-3", 24 * HOURS),
        ("deepseek:deepseek-chat", HOURS),
        ("groq:llama", 2 * HOURS),
        ("anthropic:claude-sonnet-4-6", 5 * MINUTES),
        ("xai:grok-4", 5 * MINUTES),
        ("openrouter:openai/gpt-6", 5 * MINUTES),
        ("openai-compatible:gpt-6", 5 * MINUTES),
        ("offline", 5 * MINUTES),
        ("", 5 * MINUTES),
    ],
)
def test_each_provider_keeps_a_prompt_as_long_as_it_says(model, seconds):
    assert cache_lifetime(model, {}) == seconds


@pytest.mark.parametrize(
    ("model", "retention", "seconds"),
    [
        ("openai:gpt-4.1", "24h", HOURS),
        ("openai:gpt-6", "in_memory", 5 * MINUTES),
        ("anthropic:claude", "24h", 5 * MINUTES),
    ],
)
def test_the_retention_asked_of_openai_comes_first(model, retention, seconds):
    assert cache_lifetime(model, {"openai_prompt_cache_retention": retention}) == seconds


def test_of_a_pause_for_each_provider_the_exact_name_counts_and_then_the_default():
    idle = read_idle({"default": "10m", "openai": "auto", "Anthropic": False, "groq": 0})

    assert pause_of(idle, "openai:gpt-6", {}) == HOURS
    assert pause_of(idle, "openai-chat:gpt-6", {}) == 600
    assert pause_of(idle, "anthropic:claude", {}) is None
    assert pause_of(idle, "groq:llama", {}) == 0
    assert pause_of(read_idle({"openai": "1h"}), "groq:llama", {}) is None


def test_without_a_pause_nothing_is_ever_idle():
    assert pause_of(False, "openai:gpt-6", {}) is None


@given(st.floats(0, 10**6), st.sampled_from(["ms", "s", "m", "h"]), st.booleans())
def test_any_duration_is_read_back(number, unit, spaced):
    size = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
    text = f"{number:.3f}{' ' if spaced else ''}{unit}"
    assert read_idle(text) == pytest.approx(float(f"{number:.3f}") * size)


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        assert read_idle(text) == "auto" or read_idle(text) >= 0
    except ValueError as error:
        assert "must be seconds" in str(error)  # noqa: PT017
