import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.options import MemoryOptions, faults, problems

WRONG = [
    ("message_tokens", 0, "must be more than 0"),
    ("message_tokens", -1, "must be more than 0"),
    ("message_tokens", 1.5, "must be a valid integer"),
    ("message_tokens", "many", "must be a valid integer"),
    ("message_tokens", None, "must be a valid integer"),
    ("share_token_budget", "perhaps", "must be a valid boolean"),
    ("buffer_tokens", 0, "must be a finite number, more than 0, or false"),
    ("buffer_tokens", -0.2, "more than 0"),
    ("buffer_tokens", 30_000, "must be less than 30000, the message_tokens"),
    ("buffer_tokens", True, "or false"),
    ("buffer_tokens", float("nan"), "finite"),
    ("buffer_tokens", float("inf"), "finite"),
    ("buffer_activation", 0, "must be more than 0"),
    ("buffer_activation", -1, "must be more than 0"),
    ("buffer_activation", 1.5, "must be a share up to 1, or at least 1000 tokens"),
    ("buffer_activation", 999, "at least 1000"),
    ("buffer_activation", 30_000, "must be less than 30000"),
    ("buffer_activation", float("nan"), "finite"),
    ("block_after", 0.5, "must be a factor from 1 on, or at least 30000"),
    ("block_after", 29_999, "at least 30000, the message_tokens"),
    ("block_after", 0, "must be more than 0"),
    ("block_after", float("inf"), "finite"),
    ("activate_after_idle", "abc", 'must be seconds, a duration like "5m"'),
    ("activate_after_idle", -1, "must be seconds"),
    ("activate_after_idle", float("nan"), "must be seconds"),
    ("activate_after_idle", {"openai": "soon"}, "openai = 'soon': must be seconds"),
    ("reflection_activate_after_idle", "5", "must be seconds"),
    ("reflection_activate_after_idle", True, "must be seconds"),
    ("activate_on_provider_change", 7, "must be a valid boolean"),
    ("previous_observer_tokens", -1, "must be a whole number of tokens, 0 or more, or false"),
    ("previous_observer_tokens", float("nan"), "must be a whole number"),
    ("previous_observer_tokens", float("inf"), "must be a whole number"),
    ("previous_observer_tokens", True, "must be a whole number"),
    ("max_tokens_per_batch", 0, "must be greater than 0"),
    ("parallel_calls", 0, "must be greater than or equal to 1"),
    ("parallel_calls", 65, "must be less than or equal to 64"),
    ("other_conversations_tokens", -1, "must be greater than or equal to 0"),
    ("scope", "team", "must be 'thread' or 'resource'"),
    ("observer_prompt", "short", "must be 'full' or 'condensed'"),
    ("observe_attachments", "image/*", 'must be true, false, "auto" or a list'),
    ("observe_attachments", ["png"], "'png' is no pattern like"),
    ("observation_tokens", 0, "must be more than 0"),
    ("observation_tokens", "few", "must be a valid integer"),
    ("reflection_buffer_activation", 0, "up to 1"),
    ("reflection_buffer_activation", 1.1, "must be a share, more than 0 and up to 1"),
    ("reflection_block_after", 0.9, "at least 40000, the observation_tokens"),
    ("reflection_block_after", 39_999, "at least 40000"),
    ("reflection_block_after", float("nan"), "finite"),
    ("wait_seconds", -1, "must be greater than or equal to 0"),
    ("wait_seconds", float("inf"), "finite"),
    ("thread_title", "perhaps", "must be a valid boolean"),
    ("instruction", 7, "must be a valid string"),
    ("observer_model", 7, "must be a model's name"),
    ("reflector_model", None, "must be a model's name"),
    ("observer_model", {"up_to": {}}, "at least one number of tokens"),
    ("observer_model", {"up_to": {"x": "offline"}}, "up_to.x: must be a whole number"),
    ("observer_model", {"up_to": {"1": "offline"}}, "must be at least 36000, the ceiling"),
    ("reflector_model", {"up_to": {"47999": "offline"}}, "must be at least 48000"),
    ("observer_settings", "hot", "must be an object of model settings"),
    ("observer_settings", {"temprature": 1}, "did you mean temperature?"),
    ("reflector_settings", {"heat": 1}, "heat: there is no such model setting"),
    ("observer_settings", {"top_p": float("inf")}, "must be plain JSON, with finite numbers"),
    ("observer_settings", {"extra_body": {1, 2}}, "must be plain JSON"),
    ("extract", "mood", "must be a list"),
    ("extract", ["mood"], "No extractor 'mood' is registered"),
    ("extract", [{"name": "Tool", "instructions": "x"}], "is taken"),
    ("continuation_hints", "all", "object"),
    ("retrieval", 5, "object"),
]


def of(options):
    return MemoryOptions.model_validate(options)


def refused(options):
    with pytest.raises(ValidationError) as raised:
        MemoryOptions.model_validate(options)
    return problems(raised.value)


@pytest.mark.parametrize(("option", "value", "rule"), WRONG)
def test_a_wrong_option_is_refused_with_its_name_its_value_and_the_rule(option, value, rule):
    (said,) = refused({option: value})

    assert said.startswith(f"{option} = {value!r}: ")
    assert rule in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bufer_tokens": 0.2}, "bufer_tokens = 0.2: there is no such option; did you mean "),
        ({"messageTokens": 5}, "did you mean message_tokens?"),
        ({"zzz": 5}, "there are scope, message_tokens"),
        (
            {"continuation_hints": {"current_tusk": True}},
            "continuation_hints.current_tusk = True: there is no such option; did you mean current",
        ),
        (
            {"continuation_hints": {"current_task": "soon"}},
            "continuation_hints.current_task = 'soon': must be a valid boolean",
        ),
        ({"retrieval": {"scope": "team"}}, "retrieval.scope = 'team': must be 'thread' or"),
        ({"retrieval": {"vector": True}}, "retrieval.vector = True: there is no such option"),
    ],
)
def test_a_name_that_is_no_option_is_refused_with_its_place_and_the_nearest(options, said):
    assert said in refused(options)[0]


def test_several_wrong_options_are_all_named():
    said = refused({"parallel_calls": 0, "wait_seconds": -1})
    assert [each.split(" = ")[0] for each in said] == ["parallel_calls", "wait_seconds"]


@given(
    st.dictionaries(
        st.sampled_from([*MemoryOptions.model_fields, "unknown"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
        max_size=3,
    )
)
def test_whatever_is_configured_is_in_force_or_refused_in_sentences(options):
    try:
        MemoryOptions.model_validate(options)
    except ValidationError as error:
        assert all(problems(error))  # noqa: PT017


def test_without_options_the_defaults_hold():
    found = MemoryOptions().thresholds()
    assert (found.observe, found.buffer, found.floor, found.ceiling) == (30000, 6000, 6000, 36000)
    assert (found.reflect, found.buffer_reflection, found.reflect_ceiling) == (40000, 20000, 48000)


@pytest.mark.parametrize(
    ("options", "field", "tokens"),
    [
        ({"message_tokens": 20_000, "buffer_tokens": 0.25}, "buffer", 5_000),
        ({"buffer_tokens": 7_000}, "buffer", 7_000),
        ({"buffer_activation": 1}, "floor", 0),
        ({"buffer_activation": 1_000}, "floor", 1_000),
        ({"block_after": 1.5}, "ceiling", 45_000),
        ({"block_after": 40_000}, "ceiling", 40_000),
        ({"message_tokens": 90, "block_after": 100}, "ceiling", 100),
        ({"buffer_tokens": False}, "buffer", None),
        ({"buffer_tokens": False}, "buffer_reflection", None),
        ({"buffer_tokens": False}, "ceiling", 30_000),
        ({"reflection_block_after": 2}, "reflect_ceiling", 80_000),
    ],
)
def test_ratios_and_absolutes_mean_token_counts(options, field, tokens):
    assert getattr(MemoryOptions.model_validate(options).thresholds(), field) == tokens


def test_a_shared_budget_goes_with_buffering():
    found = of({"share_token_budget": True}).thresholds()
    assert (found.given(0).observe, found.given(50_000).observe) == (70_000, 30_000)
    assert found.buffer == 6_000


def test_the_tiers_of_a_shared_budget_must_reach_its_largest_ceiling():
    tiers = {"up_to": {"83999": "offline"}}
    (said,) = refused({"share_token_budget": True, "observer_model": tiers})
    assert "must be at least 84000" in said


def test_options_are_kept_normalised():
    options = of(
        {
            "activate_after_idle": {"default": "5m", "OpenAI": "auto", "groq": False},
            "reflection_activate_after_idle": "1.5h",
            "observer_model": {"up_to": {"5000": "offline", 90_000: "openai:gpt-5"}},
            "observe_attachments": ["image/*", "Application/PDF", "*"],
            "continuation_hints": {"current_task": False},
            "retrieval": True,
        },
    )
    assert options.activate_after_idle == {"default": 300, "openai": "auto", "groq": False}
    assert options.reflection_activate_after_idle == 5400
    assert options.observer_model == {"up_to": {"5000": "offline", "90000": "openai:gpt-5"}}
    assert options.observe_attachments == ("image/*", "application/pdf", "*")
    assert not options.continuation_hints.current_task
    assert options.continuation_hints.suggested_response
    assert options.retrieval.scope == "resource"


@pytest.mark.parametrize("value", [0, False, 500])
def test_previous_observations_are_limited_or_left_whole(value):
    found = of({"previous_observer_tokens": value}).previous_observer_tokens
    assert found == value
    assert (found is False) == (value is False)


@pytest.mark.parametrize(("value", "wanted"), [(True, True), (False, False)])
def test_hints_and_retrieval_are_turned_on_and_off_as_a_whole(value, wanted):
    options = of({"continuation_hints": value, "retrieval": value})
    assert bool(options.continuation_hints) is wanted
    assert bool(options.retrieval) is wanted


def test_the_settings_of_models_and_providers_all_survive():
    given = {"temperature": 0.7, "timeout": 9, "google_thinking_config": {"thinking_budget": 5}}
    assert of({"observer_settings": given}).observer_settings == given


def test_options_once_read_can_be_stored_and_read_again():
    options = of(
        {"retrieval": True, "activate_after_idle": {"xai": "1h"}, "continuation_hints": False}
    )
    stored = options.model_dump(mode="json", exclude={"block_after"})
    again = of(stored)
    assert again == options


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"parallel_calls": 0}, ["parallel_calls"]),
        ({"retrieval": {"scope": "world"}}, ["retrieval"]),
        ({"buffer_tokens": 40_000}, ["buffer_tokens"]),
        ({"buffer_tokens": False, "block_after": 2}, ["block_after"]),
        ({"observer_model": {"up_to": {"10": "offline"}}}, ["observer_model"]),
        ({"no_such_option": 1}, [""]),
    ],
)
def test_each_fault_says_at_which_option_it_is_mended(options, at):
    with pytest.raises(ValidationError) as caught:
        MemoryOptions.model_validate(options)

    assert [fault.option for fault in faults(caught.value)] == at
    assert [fault.said for fault in faults(caught.value)] == problems(caught.value)
