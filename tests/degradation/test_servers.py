"""What people notice while Redis, PostgreSQL or the worker is away, and when it is back."""

import signal
from uuid import uuid4

import pytest

from tests.degradation.conftest import LONG
from tests.fleet.private import until

pytestmark = pytest.mark.slow

WAITS = "Buffering is due and waits for a worker"


def heard(socket, text, seconds=30):
    """Wait until a page is sent a text."""
    return until(lambda: text in socket.recv(timeout=seconds), f"a page hears {text!r}")


def test_while_redis_is_away_the_chat_goes_on_and_work_resumes_after(world):
    person = world.people[0]
    thread = person.threads[0]
    with world.socket(person, thread) as page:
        heard(page, "render")
        world.redis.stop()
        world.talk(person, thread, *[f"{n}. {LONG}" for n in range(8)])
        # An open page compares itself with the rows; one without a socket asks for its regions.
        heard(page, "7. My sister")
        assert "7. My sister" in person.regions(world.url, thread).text
        assert person.page(world.url, thread).status == 200
        assert person.get(world.url, "/healthz").status == 200
        assert '"events": "away' in person.get(world.url, "/readyz").text
        assert WAITS in world.gauge(person, thread)
        assert world.buffered(thread) == 0

        world.redis.start()
        until(lambda: world.buffered(thread), "an Observer wrote")
        world.talk(person, thread, "And once more.")
        heard(page, "And once more.")
    assert world.worker.lives
    assert world.is_clean()


def test_a_redis_that_hangs_holds_up_no_turn(world):
    person = world.people[0]
    thread = person.threads[1]
    with world.redis.hanging():
        world.talk(person, thread, "One.", "Two.", "Three.")
        assert person.page(world.url, thread).status == 200
    assert world.turns(thread) == ["done"] * 3


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT], ids=["killed", "stopped"])
def test_while_postgresql_is_away_a_page_says_so_and_nothing_is_half_written(world, how):
    person = world.people[1]
    thread = person.threads[how == signal.SIGINT]
    world.talk(person, thread, "Before.")
    under_way, refused = uuid4(), uuid4()
    assert person.send(world.url, thread, "Under way.", under_way).status == 204

    world.postgres.stop(how)
    page = person.page(world.url, thread)
    sent = person.send(world.url, thread, "Refused.", refused)
    assert (page.status, sent.status) == (503, 503)
    assert "<h1>Away for a moment</h1>" in page.text
    assert page.headers["Retry-After"] == sent.headers["Retry-After"] == "5"
    assert "Try again in a few seconds" in sent.text

    world.postgres.start()
    until(lambda: person.page(world.url, thread).status == 200, "pages are there again")
    assert [person.send(world.url, thread, "Refused.", refused).status for _ in range(2)] == [
        204
    ] * 2
    until(lambda: not {"waiting", "running"} & set(world.turns(thread)), "all turns ended")
    for number, status in enumerate(world.turns(thread), 1):
        if status != "done":
            assert person.retry(world.url, thread, number).status == 204
    until(lambda: world.turns(thread).count("done") >= 3, "what was interrupted is answered")

    said = world.messages(thread)
    assert said.count("Refused.") == 1
    assert "Under way." in said
    assert world.is_clean()


def test_while_the_worker_is_away_turns_go_on_and_the_gauge_says_why(world):
    person = world.people[2]
    thread = person.threads[0]
    world.site.kill(world.worker)
    world.talk(person, thread, *[f"{n}. {LONG}" for n in range(6)])
    assert WAITS in world.gauge(person, thread)

    # What waited in the broker is lost too: that costs time, and nothing else.
    world.redis.stop()
    world.redis.start()
    world.site.start(world.worker)
    until(lambda: world.buffered(thread), "an Observer wrote")
    until(lambda: WAITS not in world.gauge(person, thread), "the gauge no longer says so")
    assert world.is_clean()
