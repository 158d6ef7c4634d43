import pytest

from memory.engine.thresholds import ThresholdError, resolve


def test_the_defaults_resolve_to_plain_token_counts():
    thresholds = resolve()

    assert thresholds.observe == 30_000
    assert thresholds.buffer == 6_000
    assert thresholds.floor == 6_000
    assert thresholds.ceiling == 36_000
    assert thresholds.reflect == 40_000
    assert thresholds.buffer_reflection == 20_000
    assert thresholds.reflect_ceiling == 48_000


def test_a_share_to_buffer_is_taken_of_the_message_tokens():
    assert resolve(message_tokens=20_000, buffer_tokens=0.25).buffer == 5_000


def test_an_absolute_retention_is_kept_as_it_is():
    assert resolve(buffer_activation=2_000).floor == 2_000


def test_a_ceiling_can_be_a_factor_or_absolute():
    assert resolve(block_after=1.5).ceiling == 45_000
    assert resolve(message_tokens=90, buffer_tokens=0.5, block_after=100).ceiling == 100


def test_with_buffering_off_nothing_is_done_ahead_of_time():
    thresholds = resolve(buffer_tokens=None)

    assert thresholds.buffer is None
    assert thresholds.ceiling == thresholds.observe
    assert thresholds.buffer_reflection is None
    assert thresholds.reflect_ceiling == thresholds.reflect


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"message_tokens": 0}, "message_tokens"),
        ({"observation_tokens": -1}, "observation_tokens"),
        ({"buffer_tokens": 0}, "buffer_tokens"),
        ({"buffer_tokens": -5}, "buffer_tokens"),
        ({"buffer_tokens": 30_000}, "buffer_tokens"),
        ({"buffer_activation": 0}, "buffer_activation"),
        ({"buffer_activation": 1.5}, "buffer_activation"),
        ({"buffer_activation": 999}, "buffer_activation"),
        ({"buffer_activation": 1_000, "message_tokens": 1_000}, "buffer_activation"),
        ({"block_after": 0.5}, "block_after"),
        ({"block_after": 29_999}, "block_after"),
        ({"reflection_buffer_activation": 1.1}, "reflection_buffer_activation"),
        ({"reflection_buffer_activation": 0}, "reflection_buffer_activation"),
        ({"reflection_block_after": 39_999}, "reflection_block_after"),
        ({"message_tokens": float("nan")}, "message_tokens"),
    ],
)
def test_an_impossible_option_is_named_with_its_rule(options, field):
    with pytest.raises(ThresholdError) as caught:
        resolve(**options)

    assert caught.value.field == field
    assert "must be" in str(caught.value)


def test_the_interval_is_halved_close_to_the_threshold_only():
    thresholds = resolve()

    assert thresholds.buffer_interval(23_399) == 6_000
    assert thresholds.buffer_interval(23_400) == 3_000
    assert thresholds.buffer_interval(30_000) == 6_000
