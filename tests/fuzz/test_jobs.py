"""Seeds are shared among interpreters, and what happened in each is added up."""

from argparse import Namespace

from tests.fuzz import jobs


def test_every_seed_is_played_once_whoever_plays_it():
    asked = Namespace(first=11, seeds=8, jobs=3)
    played = [seed for first, count in jobs.shares(asked) for seed in range(first, first + count)]
    assert played == list(range(11, 19))


def test_nobody_is_started_to_play_nothing():
    assert jobs.shares(Namespace(first=1, seeds=1, jobs=4)) == [(1, 1)]


def test_what_never_happened_is_told_as_well_as_what_did():
    one = {
        **{"seeds": 2, "operations": 400, "processes": 1},
        **{"violations": {"order": 0}, "exercised": {"kills": 3, "forks": 0}},
    }
    other = one | {"seeds": 1, "operations": 200, "exercised": {"kills": 1, "forks": 0}}

    assert jobs.added([one, other]) == {
        **{"seeds": 3, "operations": 600, "processes": 1},
        **{"violations": {"order": 0}, "exercised": {"kills": 4, "forks": 0}},
    }
