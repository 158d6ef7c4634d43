from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quality.spans import Span, day, month, week, weekday, weekend, year

THURSDAY = date(2023, 6, 15)
days = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def test_a_week_goes_from_monday_to_sunday():
    assert week(THURSDAY) == Span(date(2023, 6, 12), date(2023, 6, 18))


def test_a_weekend_ends_its_week():
    assert weekend(THURSDAY, -1) == Span(date(2023, 6, 10), date(2023, 6, 11))


@pytest.mark.parametrize(
    ("number", "first", "last"),
    [
        (2, date(2024, 2, 1), date(2024, 2, 29)),
        (13, date(2025, 1, 1), date(2025, 1, 31)),
        (0, date(2023, 12, 1), date(2023, 12, 31)),
    ],
)
def test_months_beyond_a_year_are_of_the_next_or_the_one_before(number, first, last):
    assert month(2024, number) == Span(first, last)


@given(days, st.integers(0, 6))
def test_a_weekday_is_found_within_a_week_and_never_on_the_day_itself(at, number):
    ahead, before = weekday(at, number, ahead=True), weekday(at, number, ahead=False)
    assert ahead.first.weekday() == before.first.weekday() == number
    assert timedelta(0) < ahead.first - at <= timedelta(7)
    assert timedelta(0) < at - before.first <= timedelta(7)


@given(days)
def test_every_day_tells_of_itself_and_of_its_neighbours(at):
    assert all(day(at, shift).tells(day(at)) for shift in (-1, 0, 1))
    assert not any(day(at, shift).tells(day(at)) for shift in (-2, 2))


def test_a_span_much_wider_than_the_wanted_one_tells_nothing():
    assert not month(2023, 6).tells(day(THURSDAY))
    assert month(2023, 6).tells(month(2023, 6))
    assert not year(2023).tells(month(2023, 6))
