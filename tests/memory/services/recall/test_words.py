from datetime import timedelta

import pytest

from memory.engine.recalled import BUDGET
from memory.models import Resource, Thread
from memory.services.recall import Refused
from memory.services.recall.words import LOOKED_AT
from memory.tokens import count
from tests.memory.services.play import AT, answer, calling, question, returning, say, words

from .play import ask, saying_and_calling, shown, thinking

pytestmark = pytest.mark.django_db


@pytest.fixture
def talked(thread):
    say(
        thread,
        question("The left hive has a new queen."),
        answer("Good news for the hive."),
        thinking("A queen, a hive."),
        question("The right hive gave twelve jars of honey."),
        calling("c1", tool="weigh_honey"),
    )
    return thread


@pytest.mark.parametrize(
    ("asked", "positions"),
    [
        ({"query": "queen"}, [1]),
        ({"query": "QUEEN jars"}, [1, 4]),
        ({"query": "hive"}, [1, 2, 4, 5]),
        ({"query": "hive queen", "limit": 1}, [1]),
        ({"query": "hive", "limit": 2}, [4, 5]),
        ({"query": "hive", "first": 2, "last": 10**30, "mode": "words"}, [2, 4, 5]),
        ({"query": "hive", "part_kind": "text"}, [2]),
        ({"query": "weigh_honey"}, [5]),
        ({"query": "hive", "after": "2026-03-02"}, [1, 2, 4, 5]),
        ({"query": "hive", "after": "2026-03-03"}, []),
        ({"query": "hive", "before": "2026-03-02"}, []),
        ({"query": "zeppelin"}, []),
        ({"query": "queen \ud83d\ud83d \x00"}, [1]),
        ({"query": "% ___"}, []),
    ],
)
def test_messages_with_any_of_the_words_are_found_and_shown_in_order(talked, asked, positions):
    assert shown(ask(talked, **asked)) == positions


@pytest.mark.parametrize("query", ["москва", "МОСКВА", "österreich", "ÖSTERREICH"])
def test_words_of_any_script_are_found_whatever_their_case(thread, query):
    say(thread, question("Москва, Österreich (1.)"), question("Bees."))
    assert shown(ask(thread, query=query)) == [1]


def test_what_is_not_found_is_named(talked):
    told = ask(talked, mode="words", query="zeppelin airship")
    assert told.startswith("No message holds any of these words: zeppelin, airship.")


@pytest.mark.parametrize("query", ["", "a b"])
def test_a_search_without_words_is_refused(talked, query):
    with pytest.raises(Refused, match="There is nothing to look for"):
        ask(talked, mode="words", query=query)


def test_a_bad_date_is_refused(talked):
    with pytest.raises(Refused, match="which is no date"):
        ask(talked, query="hive", after="lately")


def test_a_long_message_is_shown_from_where_the_word_is(thread):
    say(thread, question(f"{words(4_000)}The queen is blue. {words(4_000)}"))
    told = ask(thread, query="queen")
    assert "): …" in told
    assert "The queen is blue." in told
    assert count(told) <= BUDGET


def test_only_the_newest_matches_are_compared_and_it_is_said(thread):
    say(thread, question("A queen in a hive"), *[question("A hive")] * (LOOKED_AT + 1))
    told = ask(thread, query="queen hive", limit=3)
    assert f"Only the newest {LOOKED_AT} messages with these words were compared." in told
    assert 1 not in shown(told)
    assert shown(ask(thread, query="queen")) == [1]


def test_when_not_all_matches_are_shown_it_is_said(talked):
    assert "These are 2 of 4 messages with these words." in ask(talked, query="hive", limit=2)
    assert "These are" not in ask(talked, query="hive")


def test_what_was_recalled_before_is_not_found_again(talked):
    say(
        talked,
        saying_and_calling("I will look for the queen.", "c2", tool="recall"),
        returning("c2", tool="recall", text="The left hive has a new queen."),
        calling("c3", tool="recall"),
    )
    told = ask(talked, query="queen hive")
    assert shown(told) == [1, 2, 4, 5, 6]
    assert "called recall" not in told


@pytest.fixture
def elsewhere(another, everywhere):
    garden = another("Garden")
    say(garden, question("Plant lavender beside the hive."), at=AT + timedelta(days=1))
    return garden


def test_all_conversations_are_searched_when_asked(talked, elsewhere):
    told = ask(talked, query="hive", thread="all")
    assert shown(told) == [1, 1, 2, 4, 5]
    assert f"“Garden”, thread={elsewhere.pk}:\n[1] User (2026-03-03 10:00): Plant" in told
    assert f", this conversation, thread={talked.pk}:\n[1] User" in told


def test_one_other_conversation_is_searched_by_its_id(talked, elsewhere):
    told = ask(talked, query="hive", thread=str(elsewhere.pk))
    assert "Messages of “Garden”." in told
    assert shown(told) == [1]


def test_without_leave_all_conversations_are_this_one(talked, elsewhere, allow):
    allow({"scope": "thread"})
    assert "Plant" not in ask(talked, query="hive lavender", thread="all")


def test_no_other_resource_is_searched(talked, everywhere):
    other = Resource.objects.create(key="ben", name="Ben")
    secret = Thread.objects.create(resource=other, agent="tester")
    say(secret, question("The secret hive"))
    assert "secret hive" not in ask(talked, query="secret hive", thread="all")


def test_long_titles_and_long_words_leave_room_for_every_message(talked, another, everywhere):
    for number in range(30):
        one = another(f"{number} " + "🐝 bees and hives " * 10)
        say(one, question(f"The zeppelin {words(400)}"), question(f"A zeppelin {words(400)}"))
    query = " ".join(["zeppelin", *[f"{n}" + "xq7" * 90 for n in range(20)]])
    told = ask(talked, query=query, thread="all")
    assert len(shown(told)) == 20
    assert count(told) <= BUDGET
