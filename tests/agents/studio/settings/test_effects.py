from decimal import Decimal

import pytest

from agents.studio.settings.effects import effect
from memory.config import MemoryOptions
from memory.services.outlook import Due, Outlook


def outlook(*due, **options):
    found = MemoryOptions.model_validate(options)
    return Outlook(
        pending=0,
        buffered=0,
        lines=0,
        limits=found.thresholds(),
        options=found,
        actor_model="offline",
        due=due,
    )


def said(*due, **options):
    return effect(outlook(), outlook(*due, **options)).sentences


def test_what_would_be_done_anyway_is_no_effect():
    same = outlook(Due("buffer", 6000))

    assert not effect(same, same).any
    assert not effect(outlook(), outlook()).any
    assert not effect(None, None).any


def test_observing_says_how_much_and_about_what_it_costs():
    (sentence,) = said(Due("observe", 84_000, 3), observer_model="openai:gpt-5-mini")

    assert sentence.startswith("84k tokens will be observed at once, about $0.0")
    assert sentence.endswith("; the next turn waits.")


def test_what_has_no_known_price_is_not_called_free():
    (sentence,) = said(Due("buffer", 6000), observer_model="ollama:llama3")

    assert sentence == "6k tokens will be observed in the background, price unknown."


def test_a_table_that_does_not_reach_says_what_will_fail():
    tiers = {"up_to": {"36000": "offline"}}
    (sentence,) = said(Due("observe", 84_000), observer_model=tiers)

    assert "which fails: 84000 tokens are more than the largest tier" in sentence


@pytest.mark.parametrize(
    ("due", "sentence"),
    [
        (
            Due("activate", 18_000, 3),
            "3 buffered observations will be shown, and 18k tokens of messages leave the requests.",
        ),
        (
            Due("activate reflection", 0),
            "The reflection that waits will take the place of what it condensed.",
        ),
        (
            Due("reflect", 48_000, 9),
            "48k tokens of observations will be condensed at once, at no cost.",
        ),
        (
            Due("buffer reflection", 20_000, 4),
            "20k tokens of observations will be condensed in the background, at no cost.",
        ),
    ],
)
def test_every_kind_of_work_has_its_sentence(due, sentence):
    assert said(due, observer_model="offline", reflector_model="offline") == (sentence,)


def test_more_to_read_costs_more():
    def cost(tokens):
        (sentence,) = said(Due("observe", tokens), observer_model="openai:gpt-5-mini")
        return Decimal(sentence.split("$")[1].split(";")[0])

    assert cost(10_000) < cost(84_000) < cost(500_000)
