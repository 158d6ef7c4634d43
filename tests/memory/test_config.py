import pytest
from pydantic import ValidationError

from memory.config import MemoryOptions, effective, merged

WRONG = [
    ("message_tokens", 0, "more than 0"),
    ("message_tokens", -1, "more than 0"),
    ("message_tokens", 1.5, "integer"),
    ("message_tokens", "many", "integer"),
    ("message_tokens", None, "integer"),
    ("buffer_tokens", 0, "more than 0"),
    ("buffer_tokens", -0.2, "more than 0"),
    ("buffer_tokens", 30_000, "less than 30000"),
    ("buffer_tokens", True, "false"),
    ("buffer_tokens", float("nan"), "finite"),
    ("buffer_tokens", float("inf"), "finite"),
    ("buffer_activation", 0, "more than 0"),
    ("buffer_activation", 999, "at least 1000"),
    ("buffer_activation", 30_000, "less than 30000"),
    ("buffer_activation", float("nan"), "finite"),
    ("block_after", 0.5, "at least 30000"),
    ("block_after", 29_999, "at least 30000"),
    ("block_after", float("inf"), "finite"),
    ("observation_tokens", 0, "more than 0"),
    ("observation_tokens", "few", "integer"),
    ("reflection_buffer_activation", 0, "up to 1"),
    ("reflection_buffer_activation", 1.1, "up to 1"),
    ("reflection_block_after", 0.9, "at least 40000"),
    ("reflection_block_after", float("nan"), "finite"),
    ("previous_observer_tokens", -1, "greater than or equal to 0"),
    ("wait_seconds", -1, "greater than or equal to 0"),
    ("wait_seconds", float("inf"), "finite"),
    ("thread_title", "perhaps", "boolean"),
    ("instruction", 7, "string"),
    ("observer_model", 7, "string"),
    ("reflector_model", None, "string"),
    ("bufer_tokens", 0.2, "not permitted"),
]


@pytest.mark.parametrize(("option", "value", "rule"), WRONG)
def test_a_wrong_option_is_refused_with_its_name_its_value_and_the_rule(option, value, rule):
    with pytest.raises(ValidationError) as refused:
        MemoryOptions.model_validate({option: value})

    said = str(refused.value)
    assert option in said
    assert str(value) in said
    assert rule in said


def test_without_options_the_defaults_hold():
    found = MemoryOptions().thresholds()
    assert (found.observe, found.buffer, found.floor, found.ceiling) == (30000, 6000, 6000, 36000)
    assert (found.reflect, found.buffer_reflection, found.reflect_ceiling) == (40000, 20000, 48000)


def test_the_records_options_come_over_the_agents_and_those_over_the_defaults():
    options = merged(
        {"message_tokens": 600, "observation_tokens": 200}, {"observation_tokens": 800}
    )
    found = (options.message_tokens, options.observation_tokens, options.wait_seconds)
    assert found == (600, 800, 20)


def test_options_wrong_only_together_are_refused():
    with pytest.raises(ValidationError, match="buffer_tokens"):
        merged({"message_tokens": 600}, {"buffer_tokens": 600})


def test_buffering_can_be_turned_off():
    found = MemoryOptions(buffer_tokens=False).thresholds()
    assert (found.buffer, found.ceiling) == (None, 30000)


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
