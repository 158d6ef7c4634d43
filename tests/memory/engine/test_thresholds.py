import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("observations", "observe"),
    [(0, 70_000), (10_000, 60_000), (40_000, 30_000), (50_000, 30_000)],
)
def test_messages_may_take_what_observations_leave_of_a_shared_budget(observations, observe):
    shared = resolve(share_token_budget=True).given(observations)

    assert shared.observe == observe
    assert shared.floor == observe // 5
    assert shared.ceiling == observe * 6 // 5
    assert shared.buffer == 6_000
    assert (shared.reflect, shared.reflect_ceiling) == (40_000, 48_000)


def test_what_was_given_in_tokens_is_kept_or_keeps_its_distance_in_a_shared_budget():
    shared = resolve(share_token_budget=True, buffer_activation=2_000, block_after=33_000)

    assert shared.given(0).floor == 2_000
    assert shared.given(0).ceiling == 73_000


def test_a_shared_budget_works_with_buffering_off():
    shared = resolve(share_token_budget=True, buffer_tokens=None).given(0)

    assert (shared.buffer, shared.observe, shared.ceiling) == (None, 70_000, 70_000)


def test_thresholds_of_separate_budgets_are_the_same_beside_any_observations():
    thresholds = resolve()

    assert thresholds.given(12_345) is thresholds


SHARE = st.floats(0.000001, 1, exclude_min=False)


@given(
    message_tokens=st.integers(2, 2_000_000),
    observation_tokens=st.integers(1, 2_000_000),
    buffer_tokens=st.none() | st.floats(0.000001, 0.5) | st.integers(1, 2_000_000),
    buffer_activation=SHARE | st.integers(1_000, 2_000_000),
    block_after=st.floats(1, 99.9) | st.integers(100, 4_000_000),
    reflection_buffer_activation=SHARE,
    reflection_block_after=st.floats(1, 99.9) | st.integers(100, 4_000_000),
    share_token_budget=st.booleans(),
    now=st.integers(0, 4_000_000),
)
def test_whatever_options_are_taken_the_thresholds_stand_in_order(now, **options):
    try:
        resolved = resolve(**options)
    except ThresholdError:
        return
    for found in (resolved, resolved.given(now), resolved.given(now).given(0)):
        assert 0 <= found.floor < found.observe <= found.ceiling
        assert found.buffer is None or 1 <= found.buffer < found.observe
        assert found.reflect <= found.reflect_ceiling
        assert found.buffer_reflection is None or found.buffer_reflection <= found.reflect
        assert found.observe >= options["message_tokens"]
    assert resolved.given(0).given(now) == resolved.given(0)


@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            field: st.integers(-(10**9), 10**9) | st.floats()
            for field in (
                "message_tokens",
                "buffer_tokens",
                "buffer_activation",
                "block_after",
                "observation_tokens",
                "reflection_buffer_activation",
                "reflection_block_after",
            )
        },
    )
)
@example(fields={"message_tokens": 1.4980776123852633e308})
def test_any_numbers_are_resolved_or_refused_by_name(fields):
    found, refused = None, None
    try:
        found = resolve(**fields)
    except ThresholdError as error:
        refused = error
    assert found is not None or refused.field in str(refused)
