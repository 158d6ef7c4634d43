from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.costs import UNKNOWN, Spent, of_turns, price, spent_on, words
from agents.models import Turn

amounts = st.none() | st.decimals(0, 1000, places=6)


def test_known_models_have_a_price():
    assert price("openai:gpt-5-mini", 1_000_000, 0) == Decimal("0.25")
    assert price("anthropic:claude-sonnet-4-6", 0, 1_000_000) == Decimal(15)


@pytest.mark.parametrize("name", ["openai:nothing-like-it", "ollama:llama3", "fake", "", "a:b:c"])
def test_what_has_no_known_price_is_not_free(name):
    assert price(name, 1000, 1000) is None


def test_the_offline_model_is_free():
    assert price("offline", 1000, 1000) == 0


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (None, UNKNOWN),
        ("0", "$0"),
        ("0.00001", "less than $0.0001"),
        ("0.0001", "$0.0001"),
        ("0.00123", "$0.0012"),
        ("0.0234", "$0.023"),
        ("0.234", "$0.23"),
        ("0.05", "$0.05"),
        ("0.5", "$0.50"),
        ("12.346", "$12.35"),
    ],
)
def test_an_amount_is_said_as_exactly_as_matters(cost, said):
    assert words(None if cost is None else Decimal(cost)) == said


@given(st.lists(amounts), st.lists(amounts))
def test_a_sum_says_how_much_of_it_is_not_known(some, others):
    both = Spent.of([*some, *others])

    assert both == Spent.of(some) + Spent.of(others)
    assert both.known + both.unknown == len(some) + len(others)
    assert (UNKNOWN in str(both)) == (None in [*some, *others])


@pytest.mark.django_db
def test_what_was_noted_when_it_was_answered_holds_whatever_the_agent_is_now(thread):
    used = {"requests": 2, "input_tokens": 1_000_000, "output_tokens": 0}
    known = {"thread": thread, "status": "done", "usage": used}
    Turn.objects.create(number=1, model="openai:gpt-5-mini", cost="0.25", **known)
    Turn.objects.create(number=2, model="ollama:llama3", **known)
    Turn.objects.create(number=3, **known)
    Turn.objects.create(thread=thread, number=4, status="failed", model="offline")

    rows = of_turns(Turn.objects.all(), "thread")
    spent = sum((spent_on(row, "openai:gpt-5-mini") for row in rows), Spent())

    assert [row["model"] for row in sorted(rows, key=lambda row: row["model"])] == [
        "",
        "ollama:llama3",
        "openai:gpt-5-mini",
    ]
    assert (spent.dollars, spent.known, spent.unknown) == (Decimal("0.5"), 4, 2)
