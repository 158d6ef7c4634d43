import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.schema import problem_with

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["integer", "null"]},
        "mood": {"enum": ["good", "bad"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": None, "mood": "bad", "tags": ["x", "y"]},
        {"name": "Ada", "age": 7.0},
    ],
)
def test_a_value_that_fits_has_no_problem(value):
    assert problem_with(value, PERSON) == ""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "must be object, not array"),
        ({}, "name: is missing"),
        ({"name": 5}, "name: must be string, not number"),
        ({"name": "Ada", "age": "old"}, "age: must be integer or null, not string"),
        ({"name": "Ada", "age": True}, "age: must be integer or null, not boolean"),
        ({"name": "Ada", "mood": "so"}, "mood: must be one of 'good', 'bad'"),
        ({"name": "Ada", "tags": ["x", 5]}, "tags[1]: must be string, not number"),
        ({"name": "Ada", "size": 5}, "size: is not asked for"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(value, problem):
    assert problem_with(value, PERSON) == problem


def test_one_value_may_be_the_only_one():
    assert problem_with("no", {"const": "yes"}) == "must be one of 'yes'"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_an_empty_schema_takes_every_value(value):
    assert problem_with(value, {}) == ""


@given(JSON)
def test_any_value_is_judged(value):
    assert isinstance(problem_with(value, PERSON), str)
