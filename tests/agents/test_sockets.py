from agents.sockets import Sockets


def test_so_many_pages_of_one_person_are_open(settings):
    settings.SOCKETS_PER_USER = 2
    sockets = Sockets()
    assert sockets.enter(1) is None
    assert sockets.enter(1) is None
    reached = sockets.enter(1)
    assert (reached.limit, reached.allowed, reached.left) == ("pages at once", 2, 0)
    assert "close others" in reached.sentence
    assert sockets.enter(2) is None
    sockets.leave(1)
    assert sockets.enter(1) is None


def test_zero_is_no_limit_and_nobody_is_kept_who_left(settings):
    settings.SOCKETS_PER_USER = 0
    sockets = Sockets()
    for _ in range(500):
        assert sockets.enter(1) is None
    for _ in range(500):
        sockets.leave(1)
    assert not sockets._open
