from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.engine.recalled import BUDGET
from memory.models import Resource, Thread
from memory.services.look import record_of
from memory.services.recall import Refused
from memory.tokens import count
from tests.memory.services.play import AT, answer, question, say

from .play import ask

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("everywhere")]


def listed(thread, **asked):
    """Return the titles listed, in order."""
    told = ask(thread, mode="threads", **asked)
    return [line.split("“")[1].split("”")[0] for line in told.split("\n") if line.startswith("- ")]


@pytest.fixture
def months(thread, another):
    """Make three threads, each a month after the other; the current one comes last."""
    titles = ("January", "February", "March")
    made = [another(title) for title in titles[:2]]
    Thread.objects.filter(pk=thread.pk).update(title=titles[2])
    for number, one in enumerate([*made, thread], 1):
        at = datetime(2026, number, 10, 23, 30, tzinfo=UTC)
        say(one, question("Hello"), at=at)
        say(one, answer("Hello"), at=at + timedelta(days=3))
    return thread


def test_threads_are_listed_last_active_first_with_their_dates(months):
    told = ask(months, mode="threads").split("\n")
    assert told[0] == "Conversations, the last active first."
    assert told[1] == "- “March”, 2026-03-11 to 2026-03-14, 2 messages, this conversation"
    assert told[2] == f"  thread={months.pk}"
    assert told[3] == "- “February”, 2026-02-11 to 2026-02-14, 2 messages"
    assert len(told) == 7


@pytest.mark.parametrize(
    ("asked", "titles"),
    [
        ({"after": "2026-02-14"}, ["March", "February"]),
        ({"after": "2026-02-15"}, ["March"]),
        ({"before": "2026-02-11"}, ["January"]),
        ({"before": "2026-02-12"}, ["February", "January"]),
        ({"after": "2026-02-12", "before": "2026-02-13"}, ["February"]),
        ({"after": "2026-05-01"}, []),
        ({"limit": 2}, ["March", "February"]),
        ({"limit": 2, "page": 2}, ["January"]),
        ({"limit": 2, "page": 3}, []),
        ({"page": 0}, ["March", "February", "January"]),
    ],
)
def test_the_list_is_paged_and_kept_to_dates_of_the_users_zone(months, asked, titles):
    assert listed(months, **asked) == titles


def test_more_threads_are_named_with_their_page(months):
    assert "There are more: page=2." in ask(months, mode="threads", limit=2)
    assert "There are more" not in ask(months, mode="threads", limit=2, page=2)


def test_no_thread_at_that_time_is_said_so(months):
    assert ask(months, mode="threads", after="2026-05-01") == "(There is no such conversation.)"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"page": -1}, "counts pages from 1 and takes no cursor"),
        ({"cursor": 3}, "takes no cursor"),
        ({"before": "soon"}, "before is 'soon', which is no date."),
        ({"after": "2026-03-02", "before": "2026-03-01"}, "before must be the later date"),
    ],
)
def test_a_list_that_cannot_be_is_refused(months, asked, sentence):
    with pytest.raises(Refused) as refused:
        ask(months, mode="threads", **asked)
    assert sentence in str(refused.value)


def test_threads_of_the_lab_of_others_and_kept_out_of_memory_are_not_listed(months, another):
    other = Resource.objects.create(key="ben", name="Ben")
    for one in (
        another("Lab", is_lab=True),
        another("Private", remembers=False),
        Thread.objects.create(resource=other, agent="tester", title="Of Ben"),
    ):
        say(one, question("Secret"))
    assert listed(months) == ["March", "February", "January"]


def test_a_thread_of_the_lab_is_seen_from_itself(another):
    assert listed(another("Lab", is_lab=True), scope="thread") == ["Lab"]


def test_in_a_thread_scope_only_the_current_one_is_listed(months, allow):
    allow({"scope": "thread"})
    assert listed(months) == ["March"]
    assert listed(months, after="2026-05-01") == []


def test_a_hundred_threads_with_long_titles_cost_few_statements_and_tokens(thread, another):
    for number in range(100):
        say(another(f"{number} " + "bees and hives " * 12), question("Hello"), at=AT)
    record_of(thread)
    with CaptureQueriesContext(connection) as captured:
        told = ask(thread, mode="threads", page=2)
    assert len(captured) <= 5
    assert told.count("thread=") == 20
    assert count(told) <= BUDGET
