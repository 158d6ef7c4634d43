from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.outline import LONGEST_PATH, LONGEST_STRING, MOST_ENTRIES, outline


def outlined(value: object) -> str:
    return outline(json.dumps(value))


def test_every_value_stands_on_a_line_with_its_path() -> None:
    assert outlined({"a": 1, "b": [True, {"c": "x"}], "d": {}, "e": None}) == (
        'a: 1\nb: list of 2\nb[0]: true\nb[1].c: "x"\nd: {}\ne: null'
    )


def test_a_list_says_how_long_it_is() -> None:
    assert outlined([1, 2]) == "all: list of 2\n[0]: 1\n[1]: 2"


def test_only_the_first_twenty_of_a_container_are_told() -> None:
    lines = outlined({"a": list(range(25))}).split("\n")

    assert lines[0] == "a: list of 25"
    assert lines[-2:] == ["a[19]: 19", "a: … 5 more"]


def test_what_lies_deeper_than_five_is_only_counted() -> None:
    assert outlined({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}) == "a.b.c.d.e: object of 1"


def test_there_are_a_hundred_entries_at_most() -> None:
    lines = outlined([[n] * 20 for n in range(20)]).split("\n")

    assert len(lines) == MOST_ENTRIES + 1
    assert lines[-1] == "… more entries left out"


def test_long_strings_and_paths_are_cut() -> None:
    (line,) = outlined({"k" * 500: "v" * 500}).split("\n")

    path, value = line.split(": ", 1)
    assert path == "k" * LONGEST_PATH + "…"
    assert value == '"' + "v" * (LONGEST_STRING - 1) + "… (502 characters)"


@pytest.mark.parametrize(
    "text", ["", "no json", '{"a": ', '"text"', "12", "{}", "[]", "[" * 100_000, "9" * 5000]
)
def test_what_is_no_filled_container_has_no_outline(text: str) -> None:
    assert outline(text) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=40,
)


@given(JSON)
def test_an_outline_is_bounded_whatever_it_outlines(value: object) -> None:
    lines = outlined(value).split("\n")

    assert len(lines) <= MOST_ENTRIES + 1
    assert all(len(line) <= LONGEST_PATH + LONGEST_STRING + 40 for line in lines)
