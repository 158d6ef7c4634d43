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
    Tail,
    Waiting,
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


def snapshot(*, pending=(), chunks=(), reflection_waits=False, **state):
    """Return the snapshot of a record with one thread."""
    tail = Tail(None, tuple(pending), tuple(chunks))
    waiting = Waiting() if reflection_waits else None
    return Snapshot(tails=(tail,), reflection=waiting, **state)


def kinds(decisions):
    return [type(decision) for decision in decisions]


def test_an_empty_thread_has_nothing_due():
    assert decide(snapshot(), DEFAULTS) == ()


def test_below_the_interval_nothing_is_buffered():
    assert decide(snapshot(pending=turns(5)), DEFAULTS) == ()


def test_at_the_interval_all_completed_steps_are_buffered():
    assert decide(snapshot(pending=turns(6)), DEFAULTS) == (Buffer(1, 12, 6_000),)


def test_only_what_came_after_the_last_chunk_counts_towards_the_next():
    buffered = (chunk(1, 12, 6_000),)

    assert decide(snapshot(pending=turns(11), chunks=buffered), DEFAULTS) == ()
    assert decide(snapshot(pending=turns(12), chunks=buffered), DEFAULTS) == (
        Buffer(13, 24, 6_000),
    )


def test_the_running_turns_open_call_is_left_out_of_the_chunk():
    open_call = Pending(13, MessageKind.RESPONSE, 800, calls=frozenset({"a"}))

    assert decide(snapshot(pending=(*turns(6), open_call)), DEFAULTS) == (Buffer(1, 12, 6_000),)


def test_chunks_become_active_at_the_threshold():
    found = snapshot(pending=turns(30), chunks=(chunk(1, 48, 24_000),))

    assert decide(found, DEFAULTS)[0] == Activate(found.chunks, 30_000, 6_000)


def test_below_the_threshold_chunks_wait():
    found = snapshot(pending=turns(29), chunks=(chunk(1, 48, 24_000),))

    assert Activate not in kinds(decide(found, DEFAULTS))


def test_a_tail_left_over_the_threshold_is_buffered_after_activation():
    found = snapshot(pending=turns(35), chunks=(chunk(1, 6, 3_000),))

    assert kinds(decide(found, DEFAULTS)) == [Activate, Buffer]


def test_a_turn_waits_only_past_the_ceiling():
    assert Observe not in kinds(decide(snapshot(pending=turns(35)), DEFAULTS))
    assert decide(snapshot(pending=turns(36)), DEFAULTS)[0] == Observe(1, 60, 30_000)


def test_with_buffering_off_the_turn_waits_at_the_threshold():
    off = resolve(buffer_tokens=None)

    assert decide(snapshot(pending=turns(29)), off) == ()
    assert decide(snapshot(pending=turns(30)), off) == (Observe(1, 48, 24_000),)


def test_a_single_prompt_over_the_ceiling_is_sent_as_it_is():
    huge = (Pending(1, MessageKind.REQUEST, 90_000),)

    assert decide(snapshot(pending=huge), DEFAULTS) == ()


def test_the_oldest_rows_are_condensed_ahead_of_time_from_half_the_threshold():
    rows = tuple(Row(n, 5_000) for n in range(5))

    below = snapshot(rows=rows[:3], observation_tokens=19_999)
    assert decide(below, DEFAULTS) == ()

    due = snapshot(rows=rows, observation_tokens=25_000)
    assert decide(due, DEFAULTS) == (BufferReflection((0, 1, 2, 3), 20_000, 15_000),)


def test_one_row_larger_than_the_slice_is_condensed_alone():
    due = snapshot(rows=(Row("big", 30_000), Row("next", 100)), observation_tokens=30_100)

    assert decide(due, DEFAULTS) == (BufferReflection(("big",), 30_000, 22_500),)


def test_a_waiting_reflection_takes_its_place_at_the_threshold_and_not_before():
    rows = (Row(1, 20_000),)
    early = snapshot(rows=rows, observation_tokens=39_999, reflection_waits=True)
    due = snapshot(rows=rows, observation_tokens=40_000, reflection_waits=True)

    assert decide(early, DEFAULTS) == ()
    assert decide(due, DEFAULTS) == (ActivateReflection(),)


def test_past_the_ceiling_everything_is_condensed_at_once():
    rows = (Row(1, 40_000), Row(2, 8_000))
    due = snapshot(rows=rows, observation_tokens=48_000)

    assert decide(due, DEFAULTS) == (Reflect((1, 2), 48_000, 36_000),)


def test_a_reflection_that_brought_nothing_is_not_repeated_at_the_same_size():
    rows = (Row(1, 20_000),)
    same = snapshot(rows=rows, observation_tokens=25_000, stalled_at=25_000)
    grown = snapshot(rows=rows, observation_tokens=25_001, stalled_at=25_000)

    assert decide(same, DEFAULTS) == ()
    assert kinds(decide(grown, DEFAULTS)) == [BufferReflection]


def test_what_becomes_active_counts_for_the_reflection_in_the_same_decision():
    found = snapshot(
        pending=turns(30),
        chunks=(Chunk("c", 1, 48, 24_000, 21_000),),
    )

    assert kinds(decide(found, DEFAULTS)) == [Activate, Buffer, BufferReflection]


@given(st.integers(0, 60), st.integers(0, 60))
def test_ranges_that_are_due_follow_what_is_buffered_without_gap_or_overlap(count, buffered):
    pending = turns(count)
    last = 2 * min(count, buffered)
    chunks = (chunk(1, last, 500 * last),) if last else ()
    found = snapshot(pending=pending, chunks=chunks)

    for decision in decide(found, DEFAULTS):
        if isinstance(decision, Buffer | Observe):
            assert decision.first_position == last + 1
            covered = [
                m
                for m in pending
                if decision.first_position <= m.position <= decision.last_position
            ]
            assert sum(m.tokens for m in covered) == decision.tokens
        if isinstance(decision, Activate):
            left = after(decision, found)
            assert left.pending_tokens == decision.tokens_after
            through = decision.chunks[-1].last_position
            assert all(m.position > through for m in left.tails[0].pending)


def several(*sizes, chunks=()):
    """Return the snapshot of a record whose threads have so many turns of 1,000 tokens each."""
    return Snapshot(
        tails=tuple(
            Tail(name, turns(size), tuple(c for c in chunks if c.thread == name))
            for name, size in zip("abcdefgh", sizes, strict=False)
        )
    )


def test_the_tails_of_several_threads_count_together_and_the_longest_goes_first():
    assert decide(several(2, 3), DEFAULTS) == ()
    assert decide(several(2, 4), DEFAULTS) == (Buffer(1, 8, 4_000, "b"), Buffer(1, 4, 2_000, "a"))


def test_no_more_threads_are_buffered_than_the_interval_asks_for():
    assert decide(several(1, 7, 2, 1), DEFAULTS) == (Buffer(1, 14, 7_000, "b"),)


def test_chunks_of_several_threads_become_active_in_the_order_they_were_written():
    chunks = (
        Chunk("a1", 1, 10, 5_000, 500, "a", written=2),
        Chunk("b1", 1, 20, 10_000, 1_000, "b", written=1),
        Chunk("a2", 11, 20, 5_000, 500, "a", written=3),
    )
    found = several(12, 18, chunks=chunks)

    due = decide(found, DEFAULTS)[0]

    assert [chunk.id for chunk in due.chunks] == ["b1", "a1", "a2"]
    left = after(due, found)
    assert [tail.tokens for tail in left.tails] == [2_000, 8_000]
    assert left.pending_tokens == due.tokens_after


def test_past_the_ceiling_the_longest_tails_are_observed_until_the_rest_is_small():
    due = [d for d in decide(several(20, 4, 16), DEFAULTS) if isinstance(d, Observe)]

    assert [d.thread for d in due] == ["a"]
    assert 40_000 - sum(d.tokens for d in due) < DEFAULTS.observe


def test_an_idle_conversation_shows_its_chunks_early_and_says_why():
    found = snapshot(pending=turns(8), chunks=(chunk(1, 12, 6_000),), early="idle")

    due = decide(found, DEFAULTS)[0]

    assert (due.trigger, due.tokens_after) == ("idle", 2_000)


def test_when_the_turn_is_over_what_little_is_left_may_be_buffered():
    little = snapshot(pending=turns(1), resting=True)
    assert decide(little, DEFAULTS) == (Buffer(1, 2, 1_000, trigger="idle"),)


def test_what_is_left_of_a_turn_that_goes_on_waits_for_the_interval():
    prompt = Pending(3, MessageKind.REQUEST, 100)
    call = Pending(4, MessageKind.RESPONSE, 100, calls=frozenset({"a"}))

    for going_on in ((prompt,), (prompt, call)):
        found = snapshot(pending=(*turns(1), *going_on), resting=True)
        assert decide(found, DEFAULTS) == ()


def test_a_whole_interval_is_buffered_as_always_when_the_turn_is_over():
    found = snapshot(pending=turns(6), resting=True)
    assert decide(found, DEFAULTS) == (Buffer(1, 12, 6_000),)


def test_an_early_reflection_needs_enough_untouched_lines_beside_it():
    def early(untouched, reflection):
        waiting = Waiting(tokens=reflection, source_tokens=10_000)
        found = Snapshot(
            rows=(Row(1, 10_000),),
            observation_tokens=10_000 + untouched,
            reflection=waiting,
            early_reflection="idle",
        )
        return decide(found, DEFAULTS)

    assert early(12_000, 5_000) == (ActivateReflection("idle"),)
    assert early(4_000, 5_000) == ()
    assert early(7_000, 7_000) == ()
