"""A small world written row by row, in which every kind of change happened once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Q
from django.utils import timezone
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory.messages import dump, kind_of, plain_text
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)
from memory.services.sizes import size_of
from memory.tokens import count_line, count_message
from memory.verify import verify

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class World:
    """Write rows as the services would, and remember them by name."""

    thread: Thread
    record: MemoryRecord
    rows: dict = field(default_factory=dict)

    def say(self, *messages):
        for message in messages:
            self.thread.last_position += 1
            Message.objects.create(
                thread=self.thread,
                position=self.thread.last_position,
                kind=kind_of(message).value,
                payload=dump(message),
                text=plain_text(message),
                tokens=count_message(message),
                created_at=START + timedelta(minutes=self.thread.last_position),
            )
        self.thread.save()

    def cycle(self, kind, *, first=None, last=None, status="done"):
        lane = f"observer:{self.thread.pk}" if first else "reflector"
        return Cycle.objects.create(
            record=self.record,
            thread=self.thread,
            lane=lane,
            kind=kind,
            status=status,
            first_position=first,
            last_position=last,
            epoch=self.record.epoch,
            lease_expires_at=timezone.now(),
            finished_at=None if status == "running" else timezone.now(),
        )

    def revise(self, cause, cycle=None):
        self.record.revision += 1
        self.record.save()
        return Revision.objects.create(
            record=self.record,
            number=self.record.revision,
            cause=cause,
            cycle=cycle,
            tokens_before=0,
            tokens_after=0,
        ).number

    def observe(self, name, first, last, *texts, since=None):
        covered = Message.objects.within(self.thread.pk, first, last)
        return self._write(
            name,
            *texts,
            since=since,
            place=since,
            kind="observation",
            thread=self.thread,
            first_position=first,
            last_position=last,
            message_tokens=sum(message.tokens for message in covered),
            cycle=self.cycle("buffer", first=first, last=last),
        )

    def reflect(self, name, sources, *texts, since=None):
        place = max(source.place for source in sources) if since else None
        cycle = self.cycle("buffer_reflection")
        row = self._write(name, *texts, since=since, place=place, kind="reflection", cycle=cycle)
        for source in sources:
            ReflectionSource.objects.create(reflection=row, observation=source)
            if since:
                source.lines.filter(until=None, pinned=False).update(until=since)
        if since:
            self.record.generation += 1
            self.record.save()
        return row

    def note(self, name, text, since):
        return self._write(name, text, since=since, place=since, kind="note")

    def succeed(self, name, line, text, since, **changes):
        Line.objects.filter(pk=line.pk).update(until=since)
        self.rows[name] = Line.objects.create(
            observation=line.observation,
            ordinal=line.ordinal,
            kind=line.kind,
            text=text,
            tokens=count_line(line.kind, text, line.said_at),
            since=since,
            replaces=line,
            **changes,
        )
        return self.rows[name]

    def _write(self, name, *texts, **fields):
        row = Observation.objects.create(
            record=self.record,
            tokens=sum(count_line("medium", text, None) for text in texts),
            **fields,
        )
        self.rows[name] = row
        for ordinal, text in enumerate(texts):
            self.rows[f"{name}{ordinal}"] = Line.objects.create(
                observation=row,
                ordinal=ordinal,
                kind="medium",
                text=text,
                tokens=count_line("medium", text, None),
                first_position=row.first_position,
                last_position=row.last_position,
                since=row.since,
            )
        return row

    def settle(self):
        """Store the sums that the services keep: revisions' tokens and the cursor."""
        for number in range(1, self.record.revision + 1):
            Revision.objects.filter(record=self.record, number=number).update(
                tokens_before=self._visible(number - 1), tokens_after=self._visible(number)
            )
        ranges = Observation.objects.filter(
            record=self.record, thread=self.thread, kind="observation"
        )
        Cursor.objects.update_or_create(
            record=self.record,
            thread=self.thread,
            defaults={
                "buffered_through": max((r.last_position for r in ranges), default=0),
                "observed_through": max((r.last_position for r in ranges if r.since), default=0),
            },
        )

    def _visible(self, number):
        visible = Q(until=None) | Q(until__gt=number)
        lines = Line.objects.filter(visible, observation__record=self.record, since__lte=number)
        return size_of(lines.in_order(), ZoneInfo(self.record.resource.time_zone))

    def __getattr__(self, name):
        try:
            return self.rows[name]
        except KeyError:
            raise AttributeError(name) from None

    def set(self, row, **values):
        """Write into a row behind everybody's back."""
        assert type(row)._base_manager.filter(pk=row.pk).update(**values) == 1

    def message(self, position):
        return Message.objects.get(thread=self.thread, position=position)

    def revision(self, number):
        return Revision.objects.get(record=self.record, number=number)

    @property
    def cursor(self):
        return Cursor.objects.get(record=self.record, thread=self.thread)


def user(text):
    return ModelRequest([UserPromptPart(text, timestamp=START)], timestamp=START)


def answer(text):
    return ModelResponse([TextPart(text)], timestamp=START)


def call(call_id):
    return ModelResponse([ToolCallPart("clock", {}, call_id)], timestamp=START)


def result(call_id):
    part = ToolReturnPart("clock", "9 o'clock", call_id, timestamp=START)
    return ModelRequest([part], timestamp=START)


def empty_world(resource):
    thread = Thread.objects.create(resource=resource, agent="tester", title="Bees")
    return World(thread, MemoryRecord.objects.create(resource=resource, thread=thread))


@pytest.fixture
def world(db):
    """Two observations condensed, edited and pinned; one more shown; one buffered; one raw."""
    world = empty_world(Resource.objects.create(key="ada", name="Ada"))
    world.say(user("What time is it?"), call("c1"), result("c1"), answer("Nine."))
    for topic in ("bees", "honey", "swarms", "wax"):
        world.say(user(f"Tell me about {topic}."), answer(f"There is much to say of {topic}."))
    first = world.observe("a", 1, 4, "Ada asked for the time", since=world.revise("activate"))
    second = world.observe("b", 5, 6, "Ada asks about bees", since=world.revise("observe"))
    sources = [first, second]
    world.reflect("r", sources, "Ada asked for things", since=world.revise("reflect"))
    world.record.epoch += 4
    world.succeed("edited", world.r0, "Ada asked for the time and bees", world.revise("edit"))
    world.note("n", "Ada is a beekeeper", world.revise("note"))
    Line.objects.filter(pk=world.n0.pk).update(until=world.revise("forget"))
    world.observe("c", 7, 8, "Ada asks about honey", since=world.revise("activate"))
    world.succeed("pinned", world.c0, world.c0.text, world.revise("pin"), pinned=True)
    world.observe("d", 9, 10, "Ada asks about swarms")
    world.reflect("w", [world.c], "Waiting")
    world.settle()
    return world


@pytest.fixture
def found():
    """Verify and return the invariants that are violated, and what is said of them."""

    def verified(**options):
        found = {}
        for violation in verify(**options).violations:
            found.setdefault(violation.invariant, violation.sentence)
        return found

    return verified
