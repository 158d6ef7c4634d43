from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies

from agents.studio.timeline.curves import (
    Arrived,
    Fall,
    Point,
    Shown,
    at_time,
    falls,
    levels,
    thinned,
)

START = datetime(2026, 3, 2, 10, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


SAID = [Arrived(at(n), 100) for n in range(4)]
ACTIVATED, REFLECTED = Shown(at(5), 300, 60), Shown(at(9), 0, 20)


def test_raw_tokens_rise_with_messages_and_fall_as_a_revision_covers_them():
    points = levels(SAID, [ACTIVATED])
    assert [point.raw for point in points] == [100, 200, 300, 400, 100]
    assert falls(points, "raw") == [Fall(at(5), 400, 100)]


def test_remembered_tokens_fall_at_a_reflection_which_covers_nothing():
    points = levels(SAID, [ACTIVATED, REFLECTED])
    assert points[-1] == Point(at(9), 100, 20)
    assert falls(points, "remembered") == [Fall(at(9), 60, 20)]


def test_what_is_covered_in_the_instant_it_arrives_was_there_before():
    assert levels([Arrived(at(0), 100)], [Shown(at(0), 100, 9)]) == [Point(at(0), 0, 9)]


def test_levels_at_a_time_are_those_of_the_last_point_before():
    points = levels(SAID, [ACTIVATED])
    assert at_time(points, at(3.5)).raw == 400
    assert at_time(points, at(60)).raw == 100
    assert at_time(points, at(-1)) is None


arrivals = strategies.lists(
    strategies.builds(Arrived, strategies.integers(0, 999).map(at), strategies.integers(0, 500)),
    max_size=20,
)


@given(arrivals, strategies.lists(strategies.integers(0, 999), max_size=8))
def test_no_level_is_ever_below_nothing_and_the_last_is_what_is_left(said, moments):
    total = sum(each.tokens for each in said)
    shown = [Shown(at(1000 + n), total // (len(moments) or 1), n) for n in range(len(moments))]
    points = levels(said, shown)
    assert all(point.raw >= 0 for point in points)
    if points:
        assert points[-1].raw == total - sum(each.covered for each in shown)


@given(arrivals)
def test_thinning_keeps_the_ends_of_every_fall(said):
    shown = [Shown(at(n * 111), 40, n) for n in range(9)]
    points = levels(said, shown)
    few = thinned(points, 10)
    assert set(few) <= set(points)
    assert falls(few, "raw")[-1:] == falls(points, "raw")[-1:]
    assert few[-1] == points[-1]
