import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies

from agents.studio.timeline.scale import Scale

START = datetime(2026, 3, 2, 10, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


times = strategies.lists(strategies.integers(0, 10**7).map(at), min_size=1, max_size=40)


@given(times)
def test_times_keep_their_order_and_fill_the_width(given):
    scale = Scale(given)
    places = [scale.x(each) for each in sorted(given)]
    assert places == sorted(places)
    assert places[0] == 0
    assert len(set(given)) == 1 or places[-1] == 1


@given(times, strategies.integers(-(10**7), 2 * 10**7))
def test_any_time_has_a_place_between_its_neighbours(given, seconds):
    scale = Scale(given)
    x = scale.x(at(seconds))
    assert all(scale.x(each) <= x for each in given if each <= at(seconds))
    assert all(scale.x(each) >= x for each in given if each >= at(seconds))


@given(times)
def test_a_longer_span_between_neighbours_is_never_drawn_shorter(given):
    scale, known = Scale(given), sorted(set(given))
    drawn = [(b - a, scale.x(b) - scale.x(a)) for a, b in itertools.pairwise(known)]
    for gap, width in drawn:
        assert all(width >= other - 1e-9 for shorter, other in drawn if shorter <= gap)


def test_a_night_between_two_mornings_is_cut_short_and_told():
    evening = [at(10 * n) for n in range(30)]
    morning = [at(40_000 + 10 * n) for n in range(30)]
    scale = Scale([*evening, *morning])
    (cut,) = scale.breaks
    assert cut.lasted == timedelta(seconds=40_000 - 290)
    assert scale.x(morning[0]) - scale.x(evening[-1]) < 0.2
    assert scale.x(evening[-1]) < cut.x < scale.x(morning[0])


def test_a_lively_hour_is_drawn_as_it_was():
    assert Scale([at(60 * n) for n in range(60)]).breaks == []


def test_ticks_are_few_and_apart():
    ticks = Scale([at(n) for n in range(500)]).ticks(6)
    assert 4 <= len(ticks) <= 7
    assert all(b[0] - a[0] >= 1 / 6 for a, b in itertools.pairwise(ticks))


def test_nothing_has_a_width_too():
    scale = Scale([])
    assert (scale.x(START), scale.ticks(5), scale.breaks) == (0.0, [], [])
