from hypothesis import given
from hypothesis import strategies as st

from memory.engine.cuts import Pending
from memory.engine.lifecycle import Activate, Buffer, Chunk, Observe, Snapshot, Tail
from memory.engine.on_demand import (
    activate_all,
    ahead,
    but_newest_step,
    observe_all,
    observe_down_to,
    without_newest_step,
)
from memory.engine.values import MessageKind

REQUEST, RESPONSE = MessageKind.REQUEST, MessageKind.RESPONSE


def turns(count, tokens=100, start=1):
    """Return prompt and answer ``count`` times, each of half the tokens."""
    return tuple(
        Pending(start + at, RESPONSE if at % 2 else REQUEST, tokens // 2) for at in range(2 * count)
    )


def chunk(first, last, tokens, thread="a", written=0):
    return Chunk(f"{thread}{first}", first, last, tokens, 10, thread, written)


def one(pending, *chunks):
    return Snapshot(tails=(Tail("a", tuple(pending), chunks),))


def test_everything_is_observed_or_buffered_up_to_what_one_call_may_read():
    small = one(turns(3))

    assert observe_all(small, limit=1_000) == (Observe(1, 6, 300, "a"),)
    assert ahead(observe_all(small, limit=250)) == (Buffer(1, 4, 200, "a"),)
    assert observe_all(one(turns(1)[:1]), limit=1_000) == ()


def test_the_newest_step_of_a_thread_is_left_raw():
    assert but_newest_step(Tail("a", turns(3)), limit=1_000) == Observe(1, 4, 200, "a")
    assert but_newest_step(Tail("a", turns(3)), limit=150) == Observe(1, 2, 100, "a")
    assert but_newest_step(Tail("a", turns(2), (chunk(1, 2, 100),)), limit=1_000) is None
    assert but_newest_step(Tail("a", turns(1)), limit=1_000) is None


def test_a_step_that_is_larger_than_a_call_is_observed_whole():
    assert observe_all(one(turns(1, tokens=900)), limit=100) == (Observe(1, 2, 900, "a"),)


def test_all_threads_have_their_turn_the_longest_first():
    both = Snapshot(tails=(Tail("a", turns(1)), Tail("b", turns(2))))

    assert [due.thread for due in observe_all(both, limit=1_000)] == ["b", "a"]


def test_all_chunks_are_shown_or_as_many_as_the_target_needs():
    waiting = chunk(1, 4, 200), chunk(5, 6, 100)
    found = one(turns(4), *waiting)

    assert activate_all(found) == Activate(waiting, 400, 100, "manual")
    assert activate_all(found, down_to=250) == Activate(waiting[:1], 400, 200, "manual")
    assert activate_all(found, down_to=400) is None
    assert activate_all(one(turns(4))) is None


def test_a_chunk_of_the_newest_step_stays_where_that_is_kept():
    both = Snapshot(
        tails=(
            Tail("a", turns(2), (chunk(1, 2, 100, written=1), chunk(3, 4, 100, written=3))),
            Tail("b", turns(1), (chunk(1, 2, 100, "b", 2),)),
        )
    )

    found = activate_all(both, keep="a")
    assert found is not None
    assert [c.id for c in found.chunks] == ["a1", "b1"]


def test_only_the_oldest_that_are_too_many_are_observed():
    found = one(turns(10))

    assert observe_down_to(found, target=750, limit=1_000) == (Observe(1, 6, 300, "a"),)
    assert observe_down_to(found, target=1_000, limit=1_000) == ()
    assert observe_down_to(found, target=0, limit=450) == (Observe(1, 8, 400, "a"),)


def test_the_newest_step_is_never_observed_where_it_is_kept():
    assert observe_down_to(one(turns(2)), target=0, limit=999, keep="a") == (
        Observe(1, 2, 100, "a"),
    )
    assert observe_down_to(one(turns(1)), target=0, limit=999, keep="a") == ()
    assert without_newest_step(turns(2)) == 2
    assert without_newest_step(turns(3)[:5]) == 4
    assert without_newest_step(()) == 0


def test_other_threads_are_observed_to_their_end():
    both = Snapshot(tails=(Tail("a", turns(1)), Tail("b", turns(2))))

    assert observe_down_to(both, target=0, limit=999, keep="a") == (Observe(1, 4, 200, "b"),)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=30), st.integers(0, 3_000))
def test_what_is_left_is_within_the_target_unless_nothing_more_can_be_cut(sizes, target):
    pending = [
        Pending(at, RESPONSE if at % 2 == 0 else REQUEST, tokens)
        for at, tokens in enumerate(sizes, 1)
    ]
    found = one(pending)
    due = observe_down_to(found, target=target, limit=100_000, keep="a")
    left = sum(sizes) - sum(each.tokens for each in due)

    assert due == () or left <= target or due[0].last_position == without_newest_step(pending)
    if due:
        shorter = [p.tokens for p in pending if p.position < due[0].last_position - 1]
        assert sum(sizes) - sum(shorter) > target
