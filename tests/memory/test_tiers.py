import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import UserError
from pydantic_ai.providers import infer_provider_class

from memory.tiers import TierExceeded, TokenTiers, check_name, choose, offline_mode

SPEC = {"up_to": {"20000": "openai:gpt-5", "5000": "openai:gpt-5-mini"}}


@pytest.mark.parametrize(
    ("tokens", "model"),
    [
        (0, "openai:gpt-5-mini"),
        (5_000, "openai:gpt-5-mini"),
        (5_001, "openai:gpt-5"),
        (20_000, "openai:gpt-5"),
    ],
)
def test_the_smallest_tier_that_holds_the_tokens_is_chosen_bounds_included(tokens, model):
    assert choose(SPEC, tokens) == model


def test_above_the_top_tier_it_is_said_what_to_do():
    with pytest.raises(TierExceeded, match=r"20001 tokens .*\(20000\): add a tier"):
        choose(SPEC, 20_001)


def test_a_plain_name_serves_any_size():
    assert choose("openai:gpt-5", 10**9) == "openai:gpt-5"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "must be a model's name or"),
        ({"upto": {"1": "offline"}}, "must be a model's name or"),
        ({"up_to": {"1": "offline"}, "else": "offline"}, "must be a model's name or"),
        ({"up_to": "offline"}, "must be a model's name or"),
        ({"up_to": {}}, "at least one"),
        ({"up_to": {"0": "offline"}}, r"up_to\.0: must be a whole number"),
        ({"up_to": {"-5": "offline"}}, r"up_to\.-5: must be a whole number"),
        ({"up_to": {"1.5": "offline"}}, r"up_to\.1\.5: must be a whole number"),
        ({"up_to": {"many": "offline"}}, r"up_to\.many: must be a whole number"),
        ({"up_to": {True: "offline"}}, r"up_to\.True: must be a whole number"),
        ({"up_to": {"5": ""}}, "up_to.5 = '': must be a model's name"),
        ({"up_to": {"5": None}}, "up_to.5 = None: must be a model's name"),
        ({"up_to": {"5": "gpt"}}, "up_to.5 = 'gpt' is not a model's name"),
        ({"up_to": {"5": "opnai:gpt-5"}}, "there is no provider 'opnai'"),
        ({"up_to": {"5": "offline", "05": "offline"}}, "each number of tokens once"),
    ],
)
def test_a_table_that_is_none_is_refused_with_the_place_and_the_rule(spec, said):
    with pytest.raises(ValueError, match=said):
        TokenTiers.of(spec)


@pytest.mark.parametrize(
    "provider",
    [
        *("openai", "openai-chat", "openai-responses", "anthropic", "google", "google-cloud"),
        *("groq", "mistral", "bedrock", "azure", "azure-responses", "ollama", "openrouter", "xai"),
        *("deepseek", "together", "huggingface", "cohere", "gateway/openai", "litellm", "vllm"),
    ],
)
def test_every_provider_that_can_be_used_is_known_without_its_package(provider):
    check_name(f"{provider}:some-model")
    try:
        infer_provider_class(provider)
    except ImportError:
        pass
    except (ValueError, UserError):
        pytest.fail("The provider is not known to be one.")


@pytest.mark.parametrize("name", ["offline", "openai-compatible:any@http://127.0.0.1:1/v1"])
def test_our_own_names_are_known(name):
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "gpt-5", ":gpt-5", "openai:", "openai: ", "no such:x", "../x:y"]
)
def test_what_no_provider_can_be_meant_by_is_refused(name):
    with pytest.raises(ValueError, match=r"PROVIDER:MODEL|no provider"):
        check_name(name)


@given(
    st.dictionaries(st.integers(1, 10**7), st.just("offline"), min_size=1),
    st.integers(0, 10**7),
)
def test_a_model_is_found_exactly_up_to_the_top(table, tokens):
    tiers = TokenTiers.of({"up_to": {str(limit): name for limit, name in table.items()}})
    assert tiers.top == max(table)
    if tokens <= tiers.top:
        assert tiers.choose(tokens) == "offline"
    else:
        with pytest.raises(TierExceeded):
            tiers.choose(tokens)


@pytest.mark.parametrize("mode", ["fails", "empty", "slow"])
def test_the_offline_model_has_modes_for_trials_and_no_others(mode):
    check_name(f"offline:{mode}")
    assert offline_mode(f"offline:{mode}") == mode
    assert offline_mode("offline") == ""
    assert offline_mode("openai:gpt-5") is None
    with pytest.raises(ValueError, match="no provider 'offline'"):
        check_name("offline:works")
