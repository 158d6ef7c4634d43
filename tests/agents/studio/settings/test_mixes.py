import pytest

from agents.studio.settings.mixes import notes
from memory.config import MemoryOptions


def beside(*, tools=(), **options):
    return notes(MemoryOptions.model_validate(options), tools=tools)


def test_the_defaults_have_nothing_to_explain():
    assert beside() == {}


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"buffer_on_idle": True}, "buffer_on_idle"),
        ({"activate_after_idle": "5m"}, "activate_after_idle"),
        ({"activate_on_provider_change": True}, "activate_on_provider_change"),
        ({"reflection_activate_after_idle": "auto"}, "reflection_activate_after_idle"),
        (
            {"reflection_activate_on_provider_change": True},
            "reflection_activate_on_provider_change",
        ),
        ({"share_token_budget": True}, "share_token_budget"),
    ],
)
def test_what_needs_observing_ahead_says_so_only_without_it(options, at):
    assert at in beside(buffer_tokens=False, **options)
    assert at not in beside(**options)
    assert at not in beside(buffer_tokens=False)


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"wait_seconds": 0}, "wait_seconds"),
        ({"observe_attachments": True}, "observe_attachments"),
        ({"context_tokens": 50_000}, "context_tokens"),
        ({"retrieval": True}, "retrieval"),
    ],
)
def test_what_surprises_is_explained(options, at):
    assert list(beside(**options)) == [at]


def test_a_window_that_is_large_enough_needs_no_word():
    assert beside(context_tokens=84_000) == {}
    assert "84k" in beside(context_tokens=83_999)["context_tokens"]


def test_looking_up_takes_both_the_option_and_the_tool():
    assert beside(retrieval=True, tools=["recall"]) == {}
    assert "is kept from it" in beside(tools=["recall"])["retrieval"]
