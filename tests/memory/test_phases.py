import pytest
from pydantic_ai.models import infer_model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from memory.config import MemoryOptions, merged
from memory.llm import ModelUnavailable, first_available
from memory.phases import chain, model_settings
from memory.tiers import TierExceeded

SMALL_OBSERVER = {"up_to": {"2000": "openai:small", "900000": "openai:large"}}


@pytest.fixture(autouse=True)
def server(settings):
    settings.MEMORY_MODELS = {"observer": "xai:server-observer", "reflector": "xai:server"}


@pytest.fixture
def keys(monkeypatch):
    for provider in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "test")


def names(options, phase, tokens=1_000):
    return chain(merged({}, options), phase, "groq:actor", tokens=tokens)


@pytest.mark.parametrize(
    ("options", "phase", "expected"),
    [
        ({}, "observer", ("xai:server-observer", "groq:actor")),
        ({}, "reflector", ("xai:server", "groq:actor")),
        (
            {"observer_model": "openai:o"},
            "observer",
            ("openai:o", "xai:server-observer", "groq:actor"),
        ),
        ({"observer_model": "openai:o"}, "reflector", ("openai:o", "xai:server", "groq:actor")),
        (
            {"observer_model": "openai:o", "reflector_model": "openai:r"},
            "reflector",
            ("openai:r", "openai:o", "xai:server", "groq:actor"),
        ),
        (
            {"reflector_model": "openai:r"},
            "observer",
            ("openai:r", "xai:server-observer", "groq:actor"),
        ),
        ({"reflector_model": "groq:actor"}, "reflector", ("groq:actor", "xai:server")),
    ],
)
def test_the_models_of_a_phase_end_in_the_actors_own(options, phase, expected):
    assert names(options, phase) == expected


@pytest.mark.parametrize(("tokens", "first"), [(2_000, "openai:small"), (2_001, "openai:large")])
def test_a_table_chooses_by_what_there_is_to_read(tokens, first):
    assert names({"observer_model": SMALL_OBSERVER}, "observer", tokens)[0] == first


def test_too_much_for_a_phases_own_table_is_said_and_for_the_others_passed_over():
    options = {"observer_model": SMALL_OBSERVER}
    with pytest.raises(TierExceeded, match="900001 tokens"):
        names(options, "observer", 900_001)
    assert names(options, "reflector", 900_001) == ("xai:server", "groq:actor")


def only(*there):
    def resolve(name):
        if name not in there:
            raise ModelUnavailable(f"{name} has no key.")
        return TestModel(model_name=name)

    return resolve


def test_the_first_model_that_is_set_up_is_taken_and_the_reasons_are_kept():
    found = first_available(("a:1", "b:2", "c:3", "d:4"), only("c:3", "d:4"))
    assert (found.name, found.model.model_name) == ("c:3", "c:3")
    assert found.skipped == ("a:1 has no key.", "b:2 has no key.")


@pytest.mark.parametrize("wanted", [("a:1", "b:2"), ()])
def test_when_no_model_is_set_up_every_reason_is_given(wanted):
    with pytest.raises(ModelUnavailable) as raised:
        first_available(wanted, only())
    assert all(name in str(raised.value) for name in wanted)
    assert str(raised.value)


def test_a_missing_key_and_a_missing_package_are_reasons_to_go_on(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = first_available(("openai:gpt-5", "groq:llama", "nonsense", "offline"))
    assert found.name == "offline"
    assert "OPENAI_API_KEY" in found.skipped[0]
    assert "pydantic-ai-slim[groq]" in found.skipped[1]
    assert "PROVIDER:MODEL" in found.skipped[2]


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("openai:gpt-4.1", True),
        ("openai:gpt-5.4", True),
        ("openai:gpt-5-mini", False),
        ("openai:o3", False),
        ("anthropic:claude-sonnet-4-6", True),
        ("anthropic:claude-opus-4-7", False),
        ("google:gemini-2.5-flash", True),
    ],
)
def test_the_temperature_of_a_phase_is_for_models_known_to_take_one(keys, name, takes):
    model = infer_model(name)
    options = MemoryOptions()
    observer, reflector = {"temperature": 0.3}, {"temperature": 0}
    assert model_settings(options, "observer", model) == (observer if takes else {})
    assert model_settings(options, "reflector", model) == (reflector if takes else {})


@pytest.mark.parametrize(
    "model", [TestModel(), FunctionModel(lambda messages, info: None, model_name="gpt-4.1")]
)
def test_of_a_model_that_is_not_known_nothing_is_assumed(model):
    assert model_settings(MemoryOptions(), "observer", model) == {}


def test_all_settings_given_survive_and_come_before_ours(keys):
    given = {
        "temperature": 0.9,
        "max_tokens": 50,
        "timeout": 7,
        "openai_prompt_cache_retention": "24h",
        "google_thinking_config": {"thinking_budget": 215},
        "extra_body": {"a": 1},
    }
    options = merged({}, {"observer_settings": given, "reflector_settings": {"seed": 4}})
    model = infer_model("openai:gpt-4.1")
    assert model_settings(options, "observer", model) == given
    assert model_settings(options, "reflector", model) == {"seed": 4, "temperature": 0}


@pytest.mark.parametrize(
    "given", [{"thinking": True}, {"anthropic_thinking": {"type": "adaptive"}}]
)
def test_where_reasoning_is_set_no_temperature_is_added(keys, given):
    options = merged({}, {"observer_settings": given})
    found = model_settings(options, "observer", infer_model("anthropic:claude-sonnet-4-6"))
    assert found == given
