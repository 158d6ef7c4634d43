import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.activation import chunks_to_activate
from memory.engine.thresholds import resolve


@pytest.mark.parametrize(
    ("chunks", "retention", "pending", "block_after", "activated"),
    [
        ([6_000] * 5, 0.8, 31_000, 1.2, 5),
        ([6_000] * 5, 0.8, 36_500, 1.2, 5),
        ([6_013, 6_700, 10_393, 8_274], 2_000, 31_325, 60_000, 3),
        ([6_013, 6_700, 10_393, 8_274], 2_000, 31_325, 31_000, 3),
        ([10_000, 20_000], 0.8, 31_000, 1.2, 2),
        ([29_000], 0.8, 30_500, 1.2, 1),
        ([3_000, 3_000], 0.8, 5_000, 1.2, 1),
        ([6_000, 6_000], 1, 31_000, 1.2, 2),
    ],
)
def test_as_many_chunks_become_active_as_bring_the_rest_to_the_floor(
    chunks, retention, pending, block_after, activated
):
    thresholds = resolve(buffer_activation=retention, block_after=block_after)

    assert chunks_to_activate(chunks, pending=pending, thresholds=thresholds) == activated


def test_without_chunks_nothing_becomes_active():
    assert chunks_to_activate([], pending=40_000, thresholds=resolve()) == 0


def test_a_chunk_that_cuts_far_below_the_floor_is_left_for_later():
    assert chunks_to_activate([20_000, 10_000], pending=31_000, thresholds=resolve()) == 2
    assert chunks_to_activate([20_000, 10_900], pending=31_000, thresholds=resolve()) == 1


def test_past_the_ceiling_a_chunk_is_taken_even_so():
    thresholds = resolve(block_after=1.0)

    assert chunks_to_activate([20_000, 9_950], pending=31_000, thresholds=thresholds) == 2
    assert chunks_to_activate([20_000, 9_950], pending=31_000, thresholds=resolve()) == 2


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=12), st.integers(0, 60_000))
def test_some_chunks_become_active_and_never_more_than_there_are(chunks, pending):
    count = chunks_to_activate(chunks, pending=pending, thresholds=resolve())

    assert 1 <= count <= len(chunks)
