"""A site with servers of its own, which may be stopped: one web process, one worker, beat."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from websockets.sync.client import connect

from tests.fleet.people import Person
from tests.fleet.private import Missing, Postgres, Redis, servers, until
from tests.fleet.site import Running, Site, site

LONG = "My sister Nora moved to Lisbon on 3 May 2025, works there as a nurse and keeps two cats. "


@dataclass
class World:
    """Hold the servers, our processes and somebody who talks."""

    postgres: Postgres
    redis: Redis
    site: Site
    web: Running
    worker: Running
    people: list[Person]

    @property
    def url(self):
        return self.web.url

    def turns(self, thread):
        """Return the states of a thread's turns, in order."""
        found = "SELECT status FROM agents_turn WHERE thread_id = %s ORDER BY number"
        return [status for (status,) in self.postgres.rows(found, thread)]

    def messages(self, thread):
        """Return the texts of a thread's messages, in order."""
        found = "SELECT text FROM memory_message WHERE thread_id = %s ORDER BY position"
        return [text for (text,) in self.postgres.rows(found, thread)]

    def buffered(self, thread):
        """Return how often a worker observed a thread ahead of time."""
        found = (
            "SELECT count(*) FROM memory_cycle "
            "WHERE thread_id = %s AND kind = 'buffer' AND status = 'done'"
        )
        return self.postgres.rows(found, thread)[0][0]

    def talk(self, person, thread, *texts):
        """Send messages, each answered before the next."""
        for text in texts:
            done = self.turns(thread).count("done")
            assert person.send(self.url, thread, text).status == 204
            until(
                lambda done=done: self.turns(thread).count("done") > done, f"{text!r} is answered"
            )

    def gauge(self, person, thread):
        """Return what the page says of the size of memory."""
        return person.regions(self.url, thread, only="gauges").text

    def socket(self, person, thread):
        """Open the socket of a page."""
        place = f"ws://127.0.0.1:{self.web.port}/ws/chat/{thread}/"
        headers = {"Cookie": person.cookies, "Origin": self.url}
        return connect(place, additional_headers=headers)

    def is_clean(self):
        """Tell whether memory and turns are as they must be."""
        ended = self.site.manage("om", "verify")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return True

    def mend(self):
        """Start what a test left stopped."""
        for server in (self.postgres, self.redis):
            if not server.lives:
                server.start()
        for each in self.site.running:
            if not each.lives:
                self.site.start(each)
        self.site.ready(self.web)


@pytest.fixture
def world(started):
    started.mend()
    return started


@pytest.fixture(scope="module")
def started():
    try:
        with servers() as (postgres, redis), site(postgres.url, redis.url) as running:
            people = running.prepare("--threads", "6", "--resources", "3")
            web, worker = running.web(), running.worker()
            running.beat()
            running.ready(web)
            yield World(postgres, redis, running, web, worker, people)
    except Missing as missing:
        pytest.skip(str(missing))
