from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quality.size import estimate, size_of_lines, size_of_raw

HEADING = 6 + 1  # "Date", ":", "May", "04", ",", "2023" and the line's end.


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a cat", 2),
        ("motorbike", 2),
        ("1234567", 1),
        ("...", 1),
        ("?!?!", 2),
        ("北京", 2),
        ("Nora: yes", 3),
    ],
)
def test_a_text_is_estimated_by_its_letters(text, tokens):
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_two_texts_apart_cost_what_each_costs(one, other):
    assert estimate(f"{one}\n{other}") == estimate(one) + estimate(other)


def test_a_conversation_costs_its_lines_and_a_heading_a_day():
    assert size_of_raw(["Nora: yes", "Piet: no"], [date(2023, 5, 4)]) == 3 + 2 + 3 + 2 + HEADING


def test_a_memory_line_has_a_bullet_where_it_opens_with_a_name():
    assert size_of_lines(["Nora: yes", "leek soup"], []) == (3 + 2) + (2 + 1)
