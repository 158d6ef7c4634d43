from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agents.studio.timeline.window import windows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
#: Eight things of one morning and, after a pause of weeks, the ninth.
TIMES = [NOON + timedelta(minutes=minute) for minute in (*range(8), 50_000)]
ALL = (None, None)


def shown(times, window):
    since, until = window
    return [at for at in times if (not since or at >= since) and (not until or at <= until)]


def test_from_everything_there_is_only_a_narrower_window():
    assert set(windows(TIMES, ALL)) == {"narrower"}


def test_a_narrower_window_lies_about_the_time_travelled_to():
    assert TIMES[1] in shown(TIMES, windows(TIMES, ALL, about=TIMES[1])["narrower"])
    assert TIMES[8] in shown(TIMES, windows(TIMES, ALL, about=TIMES[8])["narrower"])


def test_a_pause_of_weeks_is_one_step_long():
    window = (TIMES[6], TIMES[7])
    assert shown(TIMES, windows(TIMES, window)["later"]) == [TIMES[7], TIMES[8]]


def test_there_is_nothing_earlier_than_the_beginning():
    assert "earlier" not in windows(TIMES, (None, TIMES[3]))


def test_an_empty_window_leads_to_all():
    empty = (NOON + timedelta(days=2), NOON + timedelta(days=3))
    assert windows(TIMES, empty) == {"all": ALL}


def test_where_nothing_happened_there_is_nowhere_to_go():
    assert windows([], ALL) == {}


@given(
    st.sets(st.integers(0, 60), min_size=1), st.lists(st.integers(0, 60), min_size=3, max_size=3)
)
def test_every_window_shows_something_else_and_never_nothing(minutes, ends):
    since, until, about = (NOON + timedelta(minutes=end) for end in ends)
    times = sorted(NOON + timedelta(minutes=minute) for minute in minutes)
    was = shown(times, (since, until))
    for name, other in windows(times, (since, until), about=about).items():
        now = shown(times, other)
        assert now
        if name == "narrower":
            assert len(now) < len(was)
        if name in ("wider", "earlier", "later"):
            assert now != was
