"""People who talk in many threads at once, whatever happens to the processes, and a watcher.

Each thread has one prompt under way at a time. It is sent with a key until some web process has
taken it; a turn that ended without an answer is tried again, as the button on the page does.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import psycopg

from tests.fleet.people import Person
from tests.fleet.private import until
from tests.fleet.site import Running

OPEN = ("waiting", "running")
GLANCE = 0.25
PATIENCE = 180.0
DIED = "The server stopped while this was being answered."

_LATEST = (
    "SELECT DISTINCT ON (thread_id) thread_id::text, number, status FROM agents_turn "
    "ORDER BY thread_id, number DESC"
)
#: For how long something has been dead, or waits, and nobody has come for it.
_LEFT = """
SELECT
  (SELECT max(extract(epoch FROM now() - lease_expires_at)) FROM agents_turn
   WHERE status = 'running'),
  (SELECT max(extract(epoch FROM now() - lease_expires_at)) FROM memory_cycle
   WHERE status = 'running'),
  (SELECT max(extract(epoch FROM now() - w.created_at)) FROM agents_turn w
   WHERE status = 'waiting' AND NOT EXISTS (
     SELECT 1 FROM agents_turn r WHERE r.thread_id = w.thread_id AND r.status = 'running'))
"""
_STORED = "SELECT thread_id::text, position, md5(payload::text) FROM memory_message"


@dataclass
class Watch:
    """Look at the rows from outside, all the time."""

    url: str
    latest: dict[str, tuple[int, str]] = field(default_factory=dict)
    turn_left: float = 0.0
    cycle_left: float = 0.0
    prompt_left: float = 0.0
    seen: dict[tuple[str, int], str] = field(default_factory=dict)
    changed: set[tuple[str, int]] = field(default_factory=set)
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self._ending.wait(GLANCE):
                rows = connection.execute(_LATEST).fetchall()
                self.latest = {thread: (number, status) for thread, number, status in rows}
                found = connection.execute(_LEFT).fetchone() or (0, 0, 0)
                turn, cycle, prompt = (float(each or 0) for each in found)
                self.turn_left = max(self.turn_left, turn)
                self.cycle_left = max(self.cycle_left, cycle)
                self.prompt_left = max(self.prompt_left, prompt)

    def remember(self) -> None:
        """Note what is stored now; what was seen must stay as it is."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = {(t, p): h for t, p, h in connection.execute(_STORED).fetchall()}
        self.changed |= {key for key, digest in self.seen.items() if found.get(key) != digest}
        self.seen |= found


@dataclass
class Load:
    """Lead many conversations through whichever web process answers."""

    watch: Watch
    webs: Sequence[Running]
    each: int
    said: Counter[str] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    not_shown: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    sends: list[float] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def run(self, talks: Sequence[tuple[Person, str]]) -> threading.Thread:
        """Begin all conversations; the thread returned ends with them."""
        ours = [threading.Thread(target=self._lead, args=talk, daemon=True) for talk in talks]

        def all_of_them() -> None:
            for each in ours:
                each.start()
            for each in ours:
                each.join()

        whole = threading.Thread(target=all_of_them, daemon=True)
        whole.start()
        return whole

    def _lead(self, person: Person, thread: str) -> None:
        try:
            for number in range(self.each):
                self._say(person, thread, f"{number} of {thread}: Nora keeps {number} cats. " * 3)
        except BaseException as failure:
            self.failures.append(failure)
            raise

    def _say(self, person: Person, thread: str, text: str) -> None:
        began, before = time.monotonic(), self._number(thread)
        key = uuid4()
        until(lambda: self._taken(person, thread, text, key), "a prompt is taken", seconds=PATIENCE)
        self.sends.append(time.monotonic() - began)
        self.said[text.strip()] += 1
        while (status := self._ended(thread, before)) != "done":
            self.retried[status] += 1
            before = self._number(thread)
            self._check_shown(person, thread, status)
            again = partial(self._again, person, thread, before)
            until(again, "it is tried again", seconds=PATIENCE)
        self.waits.append(time.monotonic() - began)

    def _number(self, thread: str) -> int:
        return self.watch.latest.get(thread, (0, ""))[0]

    def _taken(self, person: Person, thread: str, text: str, key: object) -> bool:
        found = person.send(random.choice(self.webs).url, thread, text, key)  # type: ignore[arg-type]
        return found.status == 204 or _rest()

    def _again(self, person: Person, thread: str, number: int) -> bool:
        found = person.retry(random.choice(self.webs).url, thread, number)
        return found.status == 204 or _rest()

    def _check_shown(self, person: Person, thread: str, status: str) -> None:
        """Look whether the page says what became of a turn."""

        def page() -> str:
            return person.page(random.choice(self.webs).url, thread).text or (_rest() and "") or ""

        text = until(page, "a page is answered", seconds=PATIENCE)
        if status == "interrupted" and DIED not in text:
            self.not_shown.append(thread)

    def _ended(self, thread: str, before: int) -> str:
        """Wait until a later turn than one has ended; return how."""

        def ended() -> str:
            number, status = self.watch.latest.get(thread, (0, ""))
            return status if number > before and status not in OPEN else ""

        return until(ended, f"a turn of {thread} ends", seconds=PATIENCE)


def _rest() -> bool:
    """Leave a process that is not there alone for a moment."""
    time.sleep(0.2)
    return False
