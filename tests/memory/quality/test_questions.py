from datetime import date

import pytest

from memory.quality.questions import answer_key, answerable, asked_days, days_of
from memory.quality.spans import Span
from tests.memory.quality.cases import WHAT, WHEN, Ask


def test_the_key_of_an_answer_leaves_out_what_the_question_says():
    asked = Ask("What did Piet sell to Inge?", "Piet sold Inge a motorbike", ())
    assert answer_key(asked, frozenset({"piet", "ing"})) == {"sold", "motorbik"}


def test_an_answer_that_only_repeats_the_question_is_its_own_key():
    asked = Ask("Does Nora prefer tea or coffee?", "coffee", ())
    assert answer_key(asked, frozenset({"nora"})) == {"coffe"}


def test_a_speaker_may_be_the_answer():
    asked = Ask("Who sold the motorbike?", "Piet", ())
    assert answer_key(asked, frozenset({"piet", "nora"})) == {"piet"}


@pytest.mark.parametrize(
    ("answer", "first", "last"),
    [
        ("7 May 2023", (2023, 5, 7), (2023, 5, 7)),
        ("June 2023", (2023, 6, 1), (2023, 6, 30)),
        ("2022", (2022, 1, 1), (2022, 12, 31)),
        ("The week before 9 June 2023", (2023, 5, 27), (2023, 6, 8)),
        ("the week after 9 June 2023", (2023, 6, 9), (2023, 6, 22)),
        ("The weekend before 9 June 2023", (2023, 5, 31), (2023, 6, 8)),
        ("the week of 12 June 2023", (2023, 6, 9), (2023, 6, 18)),
        ("the month before June 2023", (2023, 5, 1), (2023, 5, 31)),
        ("the day after 31 May 2023", (2023, 6, 1), (2023, 6, 1)),
        ("The Friday before 22 October 2023", (2023, 10, 20), (2023, 10, 20)),
        ("the Sunday after 22 October 2023", (2023, 10, 29), (2023, 10, 29)),
        ("21January, 2022", (2022, 1, 21), (2022, 1, 21)),
        ("Febuary 3, 2022", (2022, 2, 3), (2022, 2, 3)),
    ],
)
def test_answers_name_days_in_many_ways(answer, first, last):
    assert days_of(answer) == Span(date(*first), date(*last))


@pytest.mark.parametrize("answer", ["two weeks", "yesterday", "", "Since she was ten", "Jane"])
def test_an_answer_without_a_date_names_no_days(answer):
    assert days_of(answer) is None


def test_only_a_question_about_time_wants_days():
    assert asked_days(WHEN) == Span(date(2023, 5, 3), date(2023, 5, 3))
    assert asked_days(WHAT) is None
    assert asked_days(Ask("Which flag was raised?", "that of 3 May 2023", ())) is None
    assert asked_days(Ask("What date was it?", "3 May 2023", (), category="2")) is not None


def test_what_was_never_said_cannot_be_answered():
    assert answerable(WHAT)
    assert not answerable(Ask("What did Nora paint?", "", ()))
    assert not answerable(Ask("What did Nora paint?", "a boat", (), category="5"))
