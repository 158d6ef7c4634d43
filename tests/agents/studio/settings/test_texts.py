import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.studio.settings.fields import FIELDS, OF_RECORD
from agents.studio.settings.texts import BadText, number
from memory.config import MemoryOptions

VALUES = {
    "buffer_tokens": st.floats(0.01, 0.9) | st.integers(1, 29_999) | st.just(False),
    "message_tokens": st.integers(10, 10**9),
    "activate_after_idle": st.sampled_from(
        ["5m", 90, "auto", False, {"default": "10m", "openai": False, "anthropic": "auto"}]
    ),
    "continuation_hints": st.booleans()
    | st.fixed_dictionaries({"current_task": st.booleans(), "suggested_response": st.booleans()}),
    "observe_attachments": st.sampled_from([True, False, "auto", ["image/*"], ["*", "a/b"]]),
    "observer_model": st.sampled_from(
        ["", "offline", "openai:gpt-5", {"up_to": {"90000": "offline", "800000": "openai:a b"}}]
    ),
    "retrieval": st.sampled_from(
        [True, False, {"scope": "thread", "instructions": "Look twice.\n\nThen say so."}]
    ),
    "observer_settings": st.sampled_from([{}, {"timeout": 60, "openai_user": "ü"}]),
    "extract": st.sampled_from([[], [{"name": "Mood", "instructions": "In one word."}]]),
    "temporal_markers": st.booleans(),
    "instruction": st.sampled_from(["", "Names matter.\nDates too."]),
    "context_tokens": st.just(False) | st.integers(1000, 10**7),
}


def test_every_option_can_be_set_for_an_agent():
    assert set(FIELDS) == set(MemoryOptions.model_fields)


def test_every_option_of_one_memory_can_be_set_but_its_scope_which_is_moved():
    of_record = {each.name for group in OF_RECORD for each in group.fields}
    assert of_record == set(MemoryOptions.model_fields) - {"scope"}


@given(st.sampled_from(sorted(VALUES)).flatmap(lambda n: st.tuples(st.just(n), VALUES[n])))
def test_what_is_written_for_a_person_is_read_as_the_same_value(case):
    name, value = case
    options = MemoryOptions.model_validate({name: value})
    stored = options.model_dump()[name]

    again = FIELDS[name].text.read(FIELDS[name].text.show(stored))

    assert MemoryOptions.model_validate({name: again}).model_dump()[name] == stored


@pytest.mark.parametrize(
    ("typed", "value"),
    [("30,000", 30_000), ("30k", 30_000), ("20%", 0.2), (" .5 ", 0.5), ("1.2", 1.2), ("-1", -1)],
)
def test_numbers_are_read_as_people_write_them(typed, value):
    assert number(typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("message_tokens", "many", "“many” is not a number."),
        ("message_tokens", "", "“” is not a number."),
        ("temporal_markers", "maybe", "neither on nor off"),
        ("observer_settings", "{", "This is not JSON"),
        ("observer_model", "8000 offline\nnonsense", "“nonsense” is no tier"),
        ("continuation_hints", "some", "“some” is none of both, task, response, off."),
    ],
)
def test_what_is_no_value_is_said_in_a_sentence(name, typed, said):
    with pytest.raises(BadText, match=said.replace(".", r"\.")):
        FIELDS[name].text.read(typed)


@given(st.sampled_from(sorted(FIELDS)), st.text())
def test_whatever_is_typed_is_a_value_or_refused_in_sentences(name, typed):
    try:
        MemoryOptions.model_validate({name: FIELDS[name].text.read(typed)})
    except (BadText, ValidationError) as error:
        assert str(error)  # noqa: PT017
