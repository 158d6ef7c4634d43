import pytest
from pydantic_ai.exceptions import ModelRateLimitError

from memory.ask import LONGEST_WAIT, is_transient, retry_after


def limited(seconds):
    return ModelRateLimitError("gpt-9", "slow down", retry_after=seconds)


def within(outer, inner):
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (limited(7), 7.0),
        (limited(0), 0.0),
        (limited(-3), 0.0),
        (limited(1e9), LONGEST_WAIT),
        (limited(float("inf")), LONGEST_WAIT),
        (limited(None), None),
        (ValueError("odd"), None),
        (within(RuntimeError("wrapped"), within(ValueError(), limited(2.5))), 2.5),
        (ExceptionGroup("all", [KeyError(), limited(4)]), 4.0),
    ],
    ids=repr,
)
def test_a_provider_says_how_long_to_wait(error, seconds):
    assert retry_after(error) == seconds


def test_causes_that_go_round_in_a_circle_end():
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first

    assert retry_after(first) is None
    assert not is_transient(first)


def test_a_limit_is_worth_another_try():
    assert is_transient(within(RuntimeError(), limited(7)))
