from hypothesis import given
from hypothesis import strategies as st

from memory.engine.cuts import Pending
from memory.engine.lifecycle import (
    Activate,
    ActivateReflection,
    Buffer,
    BufferReflection,
    Chunk,
    Observe,
    Reflect,
    Row,
    Snapshot,
    after,
    decide,
)
from memory.engine.thresholds import resolve
from memory.engine.values import MessageKind

DEFAULTS = resolve()


def turns(count, tokens=1_000, start=1):
    """Return prompt and answer ``count`` times, each of half the tokens."""
    return tuple(
        Pending(
            start + index,
            MessageKind.RESPONSE if index % 2 else MessageKind.REQUEST,
            tokens // 2,
        )
        for index in range(2 * count)
    )


def chunk(first, last, tokens, name="chunk"):
    return Chunk(name, first, last, tokens, tokens // 5)


def kinds(decisions):
    return [type(decision) for decision in decisions]


def test_an_empty_thread_has_nothing_due():
    assert decide(Snapshot(), DEFAULTS) == ()


def test_below_the_interval_nothing_is_buffered():
    assert decide(Snapshot(pending=turns(5)), DEFAULTS) == ()


def test_at_the_interval_all_completed_steps_are_buffered():
    assert decide(Snapshot(pending=turns(6)), DEFAULTS) == (Buffer(1, 12, 6_000),)


def test_only_what_came_after_the_last_chunk_counts_towards_the_next():
    buffered = (chunk(1, 12, 6_000),)

    assert decide(Snapshot(pending=turns(11), chunks=buffered), DEFAULTS) == ()
    assert decide(Snapshot(pending=turns(12), chunks=buffered), DEFAULTS) == (
        Buffer(13, 24, 6_000),
    )


def test_the_running_turns_open_call_is_left_out_of_the_chunk():
    open_call = Pending(13, MessageKind.RESPONSE, 800, calls=frozenset({"a"}))

    assert decide(Snapshot(pending=(*turns(6), open_call)), DEFAULTS) == (Buffer(1, 12, 6_000),)


def test_nothing_is_buffered_while_an_observer_is_at_work():
    assert decide(Snapshot(pending=turns(8), observing=True), DEFAULTS) == ()


def test_chunks_become_active_at_the_threshold():
    snapshot = Snapshot(pending=turns(30), chunks=(chunk(1, 48, 24_000),))

    assert decide(snapshot, DEFAULTS)[0] == Activate(1, 48, 30_000, 6_000)


def test_below_the_threshold_chunks_wait():
    snapshot = Snapshot(pending=turns(29), chunks=(chunk(1, 48, 24_000),))

    assert Activate not in kinds(decide(snapshot, DEFAULTS))


def test_a_tail_left_over_the_threshold_is_buffered_after_activation():
    snapshot = Snapshot(pending=turns(35), chunks=(chunk(1, 6, 3_000),))

    assert kinds(decide(snapshot, DEFAULTS)) == [Activate, Buffer]


def test_a_turn_waits_only_past_the_ceiling():
    assert Observe not in kinds(decide(Snapshot(pending=turns(35)), DEFAULTS))
    assert decide(Snapshot(pending=turns(36)), DEFAULTS)[0] == Observe(1, 60, 30_000)


def test_a_turn_waits_for_a_running_observer_too():
    decisions = decide(Snapshot(pending=turns(40), observing=True), DEFAULTS)

    assert kinds(decisions) == [Observe]


def test_with_buffering_off_the_turn_waits_at_the_threshold():
    off = resolve(buffer_tokens=None)

    assert decide(Snapshot(pending=turns(29)), off) == ()
    assert decide(Snapshot(pending=turns(30)), off) == (Observe(1, 48, 24_000),)


def test_a_single_prompt_over_the_ceiling_is_sent_as_it_is():
    huge = (Pending(1, MessageKind.REQUEST, 90_000),)

    assert decide(Snapshot(pending=huge), DEFAULTS) == ()


def test_the_oldest_rows_are_condensed_ahead_of_time_from_half_the_threshold():
    rows = tuple(Row(n, 5_000) for n in range(5))

    below = Snapshot(rows=rows[:3], observation_tokens=19_999)
    assert decide(below, DEFAULTS) == ()

    due = Snapshot(rows=rows, observation_tokens=25_000)
    assert decide(due, DEFAULTS) == (BufferReflection((0, 1, 2, 3), 20_000, 15_000),)


def test_one_row_larger_than_the_slice_is_condensed_alone():
    due = Snapshot(rows=(Row("big", 30_000), Row("next", 100)), observation_tokens=30_100)

    assert decide(due, DEFAULTS) == (BufferReflection(("big",), 30_000, 22_500),)


def test_a_waiting_reflection_takes_its_place_at_the_threshold_and_not_before():
    rows = (Row(1, 20_000),)
    early = Snapshot(rows=rows, observation_tokens=39_999, reflection_waits=True)
    due = Snapshot(rows=rows, observation_tokens=40_000, reflection_waits=True)

    assert decide(early, DEFAULTS) == ()
    assert decide(due, DEFAULTS) == (ActivateReflection(),)


def test_past_the_ceiling_everything_is_condensed_at_once():
    rows = (Row(1, 40_000), Row(2, 8_000))
    due = Snapshot(rows=rows, observation_tokens=48_000)

    assert decide(due, DEFAULTS) == (Reflect((1, 2), 48_000, 36_000),)


def test_a_reflection_that_brought_nothing_is_not_repeated_at_the_same_size():
    rows = (Row(1, 20_000),)
    same = Snapshot(rows=rows, observation_tokens=25_000, stalled_at=25_000)
    grown = Snapshot(rows=rows, observation_tokens=25_001, stalled_at=25_000)

    assert decide(same, DEFAULTS) == ()
    assert kinds(decide(grown, DEFAULTS)) == [BufferReflection]


def test_no_second_reflector_is_due_while_one_is_at_work():
    busy = Snapshot(rows=(Row(1, 50_000),), observation_tokens=50_000, reflecting=True)

    assert decide(busy, DEFAULTS) == ()


def test_what_becomes_active_counts_for_the_reflection_in_the_same_decision():
    snapshot = Snapshot(
        pending=turns(30),
        chunks=(Chunk("c", 1, 48, 24_000, 21_000),),
    )

    assert kinds(decide(snapshot, DEFAULTS)) == [Activate, Buffer, BufferReflection]


@given(st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_ranges_that_are_due_follow_what_is_buffered_without_gap_or_overlap(
    count, buffered, observing
):
    pending = turns(count)
    last = 2 * min(count, buffered)
    chunks = (chunk(1, last, 500 * last),) if last else ()
    snapshot = Snapshot(pending=pending, chunks=chunks, observing=observing)

    for decision in decide(snapshot, DEFAULTS):
        if isinstance(decision, Buffer | Observe):
            assert decision.first_position == last + 1
            covered = [
                m
                for m in pending
                if decision.first_position <= m.position <= decision.last_position
            ]
            assert sum(m.tokens for m in covered) == decision.tokens
        if isinstance(decision, Activate):
            left = after(decision, snapshot)
            assert left.pending_tokens == decision.tokens_after
            assert all(m.position > decision.last_position for m in left.pending)
