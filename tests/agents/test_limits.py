from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from agents.limits import Allowance, Counted, Limits, Used, decide, in_words, midnight

NOW = datetime(2026, 3, 2, 18, 48, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def met(limits, counted):
    reached = decide(limits, counted, now=NOW)
    return None if reached is None else reached.limit


@pytest.mark.parametrize(
    ("limits", "counted", "limit"),
    [
        (Limits(), Counted(10**9, NOW, 10**6, *[Used(10**9, Decimal(10**6))] * 3), None),
        (Limits(characters=5), Counted(characters=5), None),
        (Limits(characters=5), Counted(characters=6), "characters per message"),
        (Limits(sends_per_minute=2), Counted(), None),
        (Limits(sends_per_minute=2), Counted(full_since=NOW - 60 * SECOND), None),
        (Limits(sends_per_minute=2), Counted(full_since=NOW - 59 * SECOND), "messages per minute"),
        (Limits(turns_at_once=2), Counted(busy=1), None),
        (Limits(turns_at_once=2), Counted(busy=2), "turns at once"),
        (Limits(user=Allowance(tokens=9)), Counted(user=Used(8)), None),
        (Limits(user=Allowance(tokens=9)), Counted(user=Used(9)), "tokens per user and day"),
        (Limits(user=Allowance(tokens=9)), Counted(resource=Used(9), server=Used(9)), None),
        (
            Limits(resource=Allowance(tokens=9)),
            Counted(resource=Used(10)),
            "tokens per resource and day",
        ),
        (
            Limits(server=Allowance(dollars=Decimal("0.5"))),
            Counted(server=Used(0, Decimal("0.5"))),
            "dollars per server and day",
        ),
        (
            Limits(user=Allowance(dollars=Decimal(1))),
            Counted(user=Used(10**9, Decimal("0.99"))),
            None,
        ),
    ],
)
def test_a_limit_is_met_where_it_says_and_no_sooner(limits, counted, limit):
    assert met(limits, counted) == limit


def test_of_several_limits_the_one_that_lasts_longest_is_told():
    limits = Limits(5, 1, 1, Allowance(tokens=1))
    counted = Counted(6, NOW, 1, Used(1))
    assert met(limits, counted) == "characters per message"
    assert met(limits, replace(counted, characters=1)) == "tokens per user and day"
    assert met(limits, replace(counted, characters=1, user=Used())) == "messages per minute"


def test_who_sends_too_fast_is_told_when_the_oldest_message_no_longer_counts():
    reached = decide(Limits(sends_per_minute=30), Counted(full_since=NOW - 48 * SECOND), now=NOW)
    assert reached.retry_after == 12
    assert (reached.allowed, reached.used, reached.left) == (30, 30, 0)
    assert reached.sentence == (
        "You sent 30 messages within a minute, as many as you may. Send this one in 12 s."
    )


def test_a_day_ends_at_midnight_utc():
    reached = decide(
        Limits(user=Allowance(tokens=1_000_000)), Counted(user=Used(1_003_221)), now=NOW
    )
    assert reached.retry_after == (5 * 60 + 11) * 60 + 30
    assert reached.left == 0
    assert "1,003,221 tokens today, of 1,000,000" in reached.sentence
    assert "after midnight UTC, in 5 h 12 min" in reached.sentence


def test_money_is_told_as_money():
    limits = Limits(resource=Allowance(dollars=Decimal(2)))
    reached = decide(limits, Counted(resource=Used(5, Decimal("2.04"))), now=NOW)
    assert "spent $2.04 today, of $2.00." in reached.sentence
    assert reached.left == Decimal(0)


def test_what_is_too_long_is_too_long_later_as_well():
    reached = decide(Limits(characters=5), Counted(characters=6), now=NOW)
    assert (reached.retry_after, reached.left) == (None, 0)
    assert "Shorten it" in reached.sentence


def test_midnight_is_that_of_the_day_in_utc():
    assert midnight(NOW) == datetime(2026, 3, 2, tzinfo=UTC)
    there = NOW.astimezone(tz=None)
    assert midnight(there) == midnight(NOW)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59, "59 s"), (60, "1 min"), (61, "2 min"), (3600, "1 h"), (3601, "1 h 1 min")],
)
def test_a_wait_is_never_told_shorter_than_it_is(seconds, words):
    assert in_words(timedelta(seconds=seconds)) == words
