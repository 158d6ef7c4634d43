import pytest
from pydantic import ValidationError

from memory.config import (
    MemoryOptions,
    Setting,
    effective,
    explain,
    idle_seconds,
    in_force,
    merged,
)
from memory.services.look import look


def test_the_records_options_come_over_the_agents_and_those_over_the_defaults():
    options = merged(
        {"message_tokens": 600, "observation_tokens": 200}, {"observation_tokens": 800}
    )
    found = (options.message_tokens, options.observation_tokens, options.wait_seconds)
    assert found == (600, 800, 20)


def test_options_wrong_only_together_are_refused():
    with pytest.raises(ValidationError, match="buffer_tokens"):
        merged({"message_tokens": 600}, {"buffer_tokens": 600})


def test_a_ceiling_without_buffering_is_refused_where_both_are_asked_for():
    for agent, record in (
        ({"buffer_tokens": False, "block_after": 1.5}, {}),
        ({"buffer_tokens": False}, {"block_after": 1.5}),
        ({}, {"block_after": 1.5, "buffer_tokens": False}),
    ):
        with pytest.raises(ValidationError, match=r"block_after = 1\.5: needs buffering"):
            merged(agent, record)


def test_a_record_can_turn_off_buffering_and_with_it_the_ceiling_of_its_agent():
    options = merged({"block_after": 1.5}, {"buffer_tokens": False})
    assert options.thresholds().ceiling == 30_000


def test_each_option_is_explained_with_its_source(settings):
    settings.MEMORY_DEFAULTS = {"observer_prompt": "condensed", "parallel_calls": 2}
    found = explain(
        {"message_tokens": 600, "parallel_calls": 8}, {"message_tokens": 700, "retrieval": True}
    )
    assert found["observer_prompt"] == Setting("condensed", "server")
    assert found["parallel_calls"] == Setting(8, "agent")
    assert found["message_tokens"] == Setting(700, "record")
    assert found["observation_tokens"] == Setting(40_000, "default")
    assert found["retrieval"] == Setting({"scope": "resource", "instructions": ""}, "record")
    assert set(found) == set(MemoryOptions.model_fields)


def test_a_table_of_models_is_explained_whole():
    table = {"up_to": {"40000": "openai:gpt-5-mini", "900000": "openai:gpt-5"}}

    found = explain({"observer_model": table}, {"reflector_model": "xai:grok-4"})

    assert found["observer_model"] == Setting(table, "agent")
    assert found["reflector_model"] == Setting("xai:grok-4", "record")


def test_each_phase_is_idle_by_its_own_option():
    options = merged({}, {"activate_after_idle": "auto"})
    assert idle_seconds(options, "openai:gpt-5-mini") == 300
    asked = {"openai_prompt_cache_retention": "24h"}
    assert idle_seconds(options, "openai:gpt-5-mini", model_settings=asked) == 3600
    assert idle_seconds(options, "openai:gpt-5-mini", phase="reflector") is None
    of_reflection = merged({}, {"reflection_activate_after_idle": 0})
    assert idle_seconds(of_reflection, "any:model", phase="reflector") == 0
    assert idle_seconds(of_reflection, "any:model") is None


@pytest.mark.django_db
def test_the_options_of_an_agent_are_found_by_its_name(profile):
    assert effective("tester", {}).message_tokens == 600
    assert effective("tester", {"message_tokens": 700}).message_tokens == 700


@pytest.mark.django_db
def test_an_agent_nobody_described_has_the_defaults():
    assert effective("nobody", {}) == MemoryOptions()


@pytest.mark.django_db
def test_options_broken_by_hand_leave_the_defaults_in_force(profile):
    profile.memory_options = {"message_tokens": -1}
    profile.save()

    assert effective(profile.slug, {}) == MemoryOptions()


@pytest.mark.django_db
def test_what_an_agent_is_changed_to_holds_for_the_records_there_are(thread, profile):
    before = look(thread.pk)
    profile.memory_options = {"message_tokens": 900, "observation_tokens": 200}
    profile.save()

    assert before.options.message_tokens == 600
    assert look(thread.pk).options.message_tokens == 900


def test_a_records_threshold_no_higher_than_what_is_kept_leaves_the_agents_in_force():
    of_agent = {"message_tokens": 5_000, "buffer_activation": 2_000}

    assert in_force("tester", of_agent, {"message_tokens": 2_000}).message_tokens == 5_000


def test_broken_options_of_a_record_leave_its_agents_in_force(caplog):
    of_agent = {"message_tokens": 600}

    found = in_force("tester", of_agent, {"buffer_tokens": 600})

    assert found == merged(of_agent, {})
    assert "buffer_tokens = 600: must be less than 600" in caplog.text
