"""Test reading dates against the day they were written."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.offline.dates import find_moments, read_date, spell, spell_date

SAID_ON = date(2023, 5, 8)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met yesterday", "May 7, 2023"),
        ("we met last night", "May 7, 2023"),
        ("the day before yesterday", "May 6, 2023"),
        ("see you tomorrow", "May 9, 2023"),
        ("I ran today", "May 8, 2023"),
        ("I moved last week", "week of May 1, 2023"),
        ("we hiked last weekend", "weekend of May 6, 2023"),
        ("we start next month", "June 2023"),
        ("I went there last year", "2022"),
        ("two days ago", "May 6, 2023"),
        ("about three weeks ago", "about April 17, 2023"),
        ("in 10 days", "May 18, 2023"),
        ("last Friday was fun", "May 5, 2023"),
        ("next Friday works", "May 12, 2023"),
        ("last Fri was fun", "May 5, 2023"),
        ("we went there on Saturday", "May 6, 2023"),
        ("we will go there on Saturday", "May 13, 2023"),
        ("last summer", "summer 2022"),
        ("last December", "December 2022"),
        ("on March 3rd", "March 3, 2023"),
        ("the 3rd of March 2021", "March 3, 2021"),
        ("2021-03-04", "March 4, 2021"),
        ("four years ago", "2019"),
    ],
)
def test_a_phrase_is_read_as_said_on_its_day(text: str, expected: str) -> None:
    moments = find_moments(text, SAID_ON)

    assert [spell(moment) for moment in moments] == [expected]


@pytest.mark.parametrize(
    "text", ["I may go", "a march of 40 people", "February 31", "no time at all", "8:30"]
)
def test_what_is_no_date_is_not_read_as_one(text: str) -> None:
    assert find_moments(text, SAID_ON) == []


def test_a_december_named_in_january_is_the_nearest_one() -> None:
    [moment] = find_moments("we met on December 30", date(2023, 1, 2))

    assert spell(moment) == "December 30, 2022"


def test_the_year_is_left_out_where_it_is_known() -> None:
    [moment] = find_moments("yesterday", SAID_ON)

    assert spell(moment, 2023) == "May 7"
    assert spell(moment, 2022) == "May 7, 2023"


@pytest.mark.parametrize(
    "phrase", ["yesterday", "last week", "last weekend", "two weeks ago", "next month", "last year"]
)
def test_a_written_date_is_read_as_it_was_meant_whenever_it_is_read(phrase: str) -> None:
    [moment] = find_moments(phrase, SAID_ON)

    [again] = find_moments(spell(moment), date(2024, 11, 3))

    assert (again.first, again.last) == (moment.first, moment.last)


def test_a_header_names_its_day_with_or_without_a_remark() -> None:
    assert read_date("May 8, 2023 (2 days ago)") == SAID_ON
    assert read_date(spell_date(SAID_ON)) == SAID_ON
    assert read_date("some day") is None
    assert read_date("February 31, 2023") is None


@given(st.text(max_size=80), st.dates(min_value=date(1, 1, 1)))
def test_no_text_and_no_day_break_the_reading(text: str, day: date) -> None:
    for moment in find_moments(f"{text} 3 weeks ago, next year", day):
        assert moment.first <= moment.last
        assert spell(moment)
