from datetime import date

import pytest

from memory.quality.dates import mentions, printed, without
from memory.quality.spans import Span

THURSDAY = date(2023, 6, 15)


def the_only_span(text):
    (mention,) = mentions(text, THURSDAY)
    return mention.span


def on(*parts):
    return Span(date(*parts), date(*parts))


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("2023-05-07", on(2023, 5, 7)),
        ("7.5.2023", on(2023, 5, 7)),
        ("7 May 2023", on(2023, 5, 7)),
        ("the 7th of May, 2023", on(2023, 5, 7)),
        ("May 7th, 2023", on(2023, 5, 7)),
        ("Sept. 3, 2022", on(2022, 9, 3)),
        ("May 2023", Span(date(2023, 5, 1), date(2023, 5, 31))),
        ("2021", Span(date(2021, 1, 1), date(2021, 12, 31))),
        ("May 7", on(2023, 5, 7)),
        ("the 7th of May", on(2023, 5, 7)),
        ("since 2019", Span(date(2019, 1, 1), date(2019, 12, 31))),
    ],
)
def test_written_dates_are_read(phrase, span):
    assert the_only_span(f"We moved {phrase}") == span


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("yesterday", on(2023, 6, 14)),
        ("the day before yesterday", on(2023, 6, 13)),
        ("tomorrow", on(2023, 6, 16)),
        ("the day after tomorrow", on(2023, 6, 17)),
        ("tonight", on(2023, 6, 15)),
        ("the other day", Span(date(2023, 6, 9), date(2023, 6, 14))),
        ("two days ago", on(2023, 6, 13)),
        ("a couple of weeks ago", Span(date(2023, 5, 29), date(2023, 6, 4))),
        ("3 months ago", Span(date(2023, 3, 1), date(2023, 3, 31))),
        ("a year ago", Span(date(2022, 4, 1), date(2022, 8, 31))),
        ("five years ago", Span(date(2018, 1, 1), date(2018, 12, 31))),
        ("in two days", on(2023, 6, 17)),
        ("last week", Span(date(2023, 6, 5), date(2023, 6, 11))),
        ("the week before last", Span(date(2023, 5, 29), date(2023, 6, 4))),
        ("the weekend before last", Span(date(2023, 6, 3), date(2023, 6, 4))),
        ("this past weekend", Span(date(2023, 6, 10), date(2023, 6, 11))),
        ("this weekend", Span(date(2023, 6, 17), date(2023, 6, 18))),
        ("next weekend", Span(date(2023, 6, 24), date(2023, 6, 25))),
        ("next month", Span(date(2023, 7, 1), date(2023, 7, 31))),
        ("last year", Span(date(2022, 1, 1), date(2022, 12, 31))),
        ("last Friday", on(2023, 6, 9)),
        ("next Tuesday", on(2023, 6, 20)),
        ("last summer", Span(date(2022, 6, 1), date(2022, 8, 31))),
        ("last spring", Span(date(2023, 3, 1), date(2023, 5, 31))),
        ("next winter", Span(date(2024, 12, 1), date(2025, 2, 28))),
        ("last October", Span(date(2022, 10, 1), date(2022, 10, 31))),
        ("in August", Span(date(2023, 8, 1), date(2023, 8, 31))),
        ("next March", Span(date(2024, 3, 1), date(2024, 3, 31))),
    ],
)
def test_phrases_are_counted_from_the_day_of_the_text(phrase, span):
    assert the_only_span(f"It is {phrase}") == span


def test_a_weekday_lies_behind_in_a_report_and_ahead_in_a_plan():
    assert the_only_span("We went hiking on Tuesday") == on(2023, 6, 13)
    assert the_only_span("We're going to hike on Tuesday") == on(2023, 6, 20)


def test_only_a_date_in_full_is_printed():
    assert [m.phrase for m in printed("On 7 May 2023, two days ago, and May 9")] == ["7 May 2023"]


def test_a_longer_phrase_is_not_read_twice():
    assert [m.phrase for m in mentions("since the day before yesterday", THURSDAY)] == [
        "the day before yesterday"
    ]


def test_days_that_no_calendar_has_are_passed_over():
    assert mentions("on 31 June 2023", date(2023, 6, 1))[0].phrase == "June 2023"


@pytest.mark.parametrize("text", ["May I?", "They march on.", "A mondain evening", "Call 555"])
def test_words_that_only_look_like_time_are_not_read(text):
    assert mentions(text, THURSDAY) == []


def test_phrases_can_be_taken_out_of_a_text():
    text = "Met Ana yesterday, and on 7 May 2023 too"
    assert without(text, mentions(text, THURSDAY)) == "Met Ana , and on  too"
