"""Interleave everything that can happen to a thread, and check the tables after every step.

Commits come late and in any order, leases lapse, cycles fail, people edit. Set OM_EXAMPLES for
more than the few conversations of an ordinary run.
"""

import os
import random

import pytest

from agents.services.thread import start
from memory.models import Cursor, Cycle, MemoryRecord, Message, Observation
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.services import observe, reflect
from memory.services.cycles import discard, fail
from memory.services.look import record_of
from memory.services.sweep import sweep
from memory.verify.run import verify
from tests.memory.services.oracle import violations
from tests.memory.services.play import (
    answer,
    calling,
    edit,
    joined,
    lapse,
    observed,
    question,
    request,
    rested,
    returning,
    say,
    seen,
    traced,
    words,
)

pytestmark = pytest.mark.django_db

SEEDS = range(int(os.environ.get("OM_EXAMPLES", "4")))
STEPS = 60


class Life:
    """Live a random life of one thread, as several processes would write it."""

    def __init__(self, thread, seed):
        self.thread = thread
        self.random = random.Random(seed)
        self.claims = []
        self.open = []
        self.calls = 0
        self.prompt = None
        self.stood = (0, 0)
        self.log = []

    def step(self):
        steps = {
            self.speak: 6,
            self.prepare: 4,
            self.claim_ahead: 4,
            self.claim_at_the_ceiling: 1,
            self.claim_a_reflection: 2,
            self.commit: 6,
            self.commit_nothing: 1,
            self.fail: 1,
            self.give_up: 1,
            self.lapse: 1,
            self.take_over: 2,
            self.edit: 1,
            self.rest: 2,
            self.sweep: 1,
        }
        (step,) = self.random.choices(list(steps), list(steps.values()))
        self.log.append(step.__name__)
        step()
        self.check()

    def speak(self):
        if self.prompt is None:
            (self.prompt,) = say(self.thread, question(self.text()))
        elif self.open:
            some = self.open[: self.random.randint(1, len(self.open))]
            say(self.thread, returning(*some, text=self.text()))
            self.open = self.open[len(some) :]
        elif self.random.random() < 0.5:
            self.open = [f"c{self.calls + n}" for n in range(self.random.randint(1, 3))]
            self.calls += 3
            say(self.thread, calling(*self.open))
        else:
            say(self.thread, answer(self.text()))
            self.prompt = None

    def text(self):
        return words(self.random.choice([4, 40, 80, 250]))

    def prepare(self):
        if self.prompt is None or self.open:
            return
        prepared = request(self.thread, prompt=self.prompt)
        sent = [b.position for b in prepared.blocks if b.position]
        told = seen(str(b.message) for b in prepared.blocks if b.kind == "memory")
        assert sent == sorted(set(sent))
        assert len(told) == len(set(told))
        assert set(sent) & set(told) <= {self.prompt}
        assert set(sent) | set(told) | self.nothing() == self.stored()

    def claim_ahead(self):
        self.keep(observe, observe.claim(self.thread.pk))

    def claim_at_the_ceiling(self):
        self.keep(observe, observe.claim(self.thread.pk, waiting=True))

    def claim_a_reflection(self):
        self.keep(reflect, reflect.claim(self.thread.pk))

    def keep(self, service, claimed):
        if claimed is not None:
            self.claims.append((service, claimed))

    def commit(self, output=traced):
        for service, claimed in self.taken():
            try:
                if service is observe:
                    observe.commit(claimed, output(claimed))
                else:
                    reflect.commit(claimed, joined(claimed), 1)
            except (CycleLost, RecordMoved, CursorMoved) as moved:
                self.log.append(type(moved).__name__)
                discard(claimed.cycle, str(moved))

    def commit_nothing(self):
        self.commit(output=lambda _: observed())

    def fail(self):
        for _, claimed in self.taken():
            fail(claimed.cycle, ValueError("It failed."), retry=self.random.random() < 0.8)

    def give_up(self):
        for _, claimed in self.taken():
            discard(claimed.cycle, "It is not wanted.")

    def taken(self):
        """Take any claim, the oldest or one that waits for long; none when there is none."""
        if self.claims:
            yield self.claims.pop(self.random.randrange(len(self.claims)))

    def lapse(self):
        for cycle in Cycle.objects.running().filter(thread=self.thread):
            lapse(cycle)

    def take_over(self):
        self.lapse()
        self.claim_ahead()
        self.claim_a_reflection()

    def edit(self):
        edit(record_of(self.thread))

    def rest(self):
        for cycle in Cycle.objects.filter(thread=self.thread, next_attempt_at__isnull=False):
            rested(cycle)

    def sweep(self):
        sweep()

    def stored(self):
        messages = Message.objects.filter(thread=self.thread)
        return set(messages.values_list("position", flat=True))

    def nothing(self):
        """Return the positions about which an observation says that nothing is worth keeping."""
        rows = Observation.objects.filter(
            thread=self.thread, since__isnull=False, lines__isnull=True
        )
        return {p for row in rows for p in range(row.first_position, row.last_position + 1)}

    def verified(self):
        """Return what the project's own verification finds."""
        report = verify(thread=self.thread.pk, running=self.running)
        return [str(violation) for violation in report.violations]

    def running(self):
        return {self.thread.pk: self.prompt} if self.prompt else {}

    def check(self):
        found = violations(self.thread.pk)
        assert found == [], f"{found} after {self.log}"
        cursor = Cursor.objects.filter(thread=self.thread).first()
        stands = (cursor.buffered_through, cursor.observed_through) if cursor else (0, 0)
        assert stands >= self.stood
        assert stands[1] >= self.stood[1]
        self.stood = stands


@pytest.fixture
def thread(resource, profile):
    profile.memory_options = {"message_tokens": 400, "observation_tokens": 120}
    profile.save()
    return start(resource, profile)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_of_events_loses_or_doubles_a_message(thread, seed):
    life = Life(thread, seed)
    for _ in range(STEPS):
        life.step()
    assert life.verified() == []


@pytest.mark.slow
def test_such_a_life_meets_what_it_is_to_survive(thread):
    life = Life(thread, 7)
    for _ in range(2 * STEPS):
        life.step()

    assert {"CycleLost", "RecordMoved", "commit_nothing", "fail", "sweep"} <= set(life.log)
    assert MemoryRecord.objects.get().generation > 0
    assert life.verified() == []
