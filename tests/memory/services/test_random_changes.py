"""Whatever people do, in whatever order: the past stays, and every invariant holds."""

from contextlib import suppress
from random import Random

import pytest

from memory.models import Line, MemoryRecord, Revision, Thread
from memory.services.change import Refused
from memory.services.clear import clear
from memory.services.edit import edit
from memory.services.erase import erase_line, erase_messages
from memory.services.forget import forget, show_again
from memory.services.fork import fork
from memory.services.history import compare, undo
from memory.services.note import note
from memory.services.pin import pin, unpin
from memory.services.restore import restore
from memory.services.scope import change_scope
from tests.memory.verify.conftest import World

from .editing import answer, condense, empty_world, observe, past, texts, user, wrong

OPERATIONS = 30


class Life:
    """Do random things to the memory of one resource."""

    def __init__(self, resource, seed):
        self.random = Random(seed)
        self.world = empty_world(resource)
        self.done = 0

    @property
    def record(self):
        self.world.record.refresh_from_db()
        return self.world.record

    def step(self, *names):
        """Do one random thing; return its name, or None when it was refused."""
        name = self.random.choice(names)
        self.done += 1
        try:
            getattr(self, name)()
        except (Refused, IndexError):
            return None
        return name

    def line(self, **filters):
        lines = Line.objects.filter(observation__record=self.record, since__gt=0, **filters)
        return self.random.choice(list(lines.order_by("since", "ordinal", "pk")))

    def number(self):
        numbers = Revision.objects.filter(record=self.record).values_list("number", flat=True)
        return self.random.choice(sorted(numbers))

    def grow(self):
        world, first = self.world, self.world.thread.last_position + 1
        world.say(user(f"What of {self.done}?"), answer(f"This of {self.done}."))
        saying = [f"Said {self.done}.{n}" for n in range(self.random.randint(0, 3))]
        observe(world, f"o{self.done}", first, first + 1, *saying)

    def condense(self):
        rows = dict.fromkeys(
            line.observation
            for line in Line.objects.filter(
                observation__record=self.record, until=None, since__gt=0, pinned=False
            ).exclude(observation__kind="note")
        )
        if not rows:
            raise IndexError
        sources = self.random.sample(list(rows), self.random.randint(1, len(rows)))
        condense(self.world, f"r{self.done}", sources, f"All of {self.done}")

    def edit(self):
        edit(self.line(until=None).pk, f"Edited {self.done}")

    def note(self):
        note(self.record.pk, f"Noted {self.done}")

    def pin(self):
        pin(self.line(until=None).pk)

    def unpin(self):
        unpin(self.line(until=None, pinned=True).pk)

    def forget(self):
        forget(self.line(until=None).pk)

    def show_again(self):
        show_again(self.line(until__gt=0).pk)

    def restore(self):
        restore(self.record.pk, self.number())

    def undo(self):
        undo(self.record.pk, self.number())

    def clear(self):
        clear(self.record.pk)

    def fork(self):
        thread = self.world.thread
        cut = 2 * self.random.randint(0, thread.last_position // 2)
        child = fork(thread.pk, cut)
        if self.random.random() < 0.5:
            return
        found = MemoryRecord.objects.filter(thread=child).first()
        self.world = World(child, found or self.record)

    def scope(self):
        scope = self.random.choice(["thread", "resource"])
        if change_scope(self.world.thread.resource_id, scope):
            thread = Thread.objects.get(pk=self.world.thread.pk)
            of_it = MemoryRecord.objects.filter(closed_at=None)
            found = of_it.filter(thread=thread).first() or of_it.get(thread=None)
            self.world = World(thread, found)

    def erase_messages(self):
        first = 2 * self.random.randint(0, self.world.thread.last_position // 2) + 1
        erase_messages(self.world.thread.pk, first, first + 1)

    def erase_line(self):
        erase_line(self.line().pk)


CHANGES = (
    *("grow", "grow", "grow", "condense", "condense", "edit", "note", "pin", "unpin", "forget"),
    *("show_again", "restore", "restore", "undo", "clear"),
)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_past_stays_as_it_was_whatever_is_changed(resource, seed):
    life = Life(resource, seed)
    life.step("grow")
    for _ in range(OPERATIONS):
        before = past(life.record)
        life.step(*CHANGES)
        assert before.items() <= past(life.record).items()
    assert wrong() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restored_revision_shows_its_lines_and_all_that_was_observed_since(resource, seed):
    life = Life(resource, seed)
    life.step("grow")
    for _ in range(OPERATIONS):
        life.step(*[name for name in CHANGES if name not in ("clear", "restore", "undo")])
    number = life.number()
    with suppress(Refused):
        restore(life.record.pk, number)

    found = compare(life.record.pk, number, life.record.revision)
    assert (found.removed, found.changed) == ((), ())
    since = {line.observation.since for line in found.added}
    assert all(at > number for at in since)
    assert {line.observation.kind for line in found.added} <= {"observation"}
    observed = Line.objects.filter(
        observation__record=life.record, observation__kind="observation", replaces=None
    ).filter(observation__since__gt=number)
    forgotten = Revision.objects.filter(record=life.record, cause="forget", number__gt=number)
    assert len(found.added) >= observed.count() - forgotten.count()
    assert wrong() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_forks_scopes_and_erasures_leave_every_invariant_standing(resource, seed):
    life = Life(resource, seed)
    life.step("grow")
    for _ in range(OPERATIONS):
        life.step(*CHANGES, "fork", "scope", "erase_messages", "erase_line")
        assert wrong() == []
    assert isinstance(texts(life.record), list)
