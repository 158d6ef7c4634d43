from datetime import datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import known, live
from agents.live import NAMES
from agents.models import Turn
from agents.services.thread import start
from agents.stamps import stamps
from memory.models import Cycle, Line, MemoryRecord, Resource, Thread
from memory.services.sizes import move_to_zone
from tests.agents.test_page import ran, talk, write


class Reading:
    """Note what is read."""

    def __init__(self, *rows):
        self.rows = list(rows)
        self.reads = []

    def __call__(self):
        self.reads.append("all")
        return list(self.rows)

    def after(self, row):
        self.reads.append(row)
        return [each for each in self.rows if row is None or each > row]


def test_a_fact_is_read_once_for_each_place():
    read, of = Reading(1), uuid4()

    for place in ("here", "here", "there", "here"):
        assert known.fact("numbers", of, place, read) == [1]

    assert len(read.reads) == 3


def test_of_several_things_only_those_that_are_not_known_are_read():
    one, other, asked = uuid4(), uuid4(), []

    def read(missing):
        asked.append(list(missing))
        return {each: each.hex for each in missing}

    known.facts("names", [one], "here", read)
    found = known.facts("names", [one, other], "here", read)

    assert found == {one: one.hex, other: other.hex}
    assert asked == [[one], [other]]


def test_rows_that_last_are_read_once_and_the_others_every_time():
    read, of = Reading(3, 2, 1), uuid4()

    def newest():
        return known.newest("rows", of, "here", read.after, most=3, lasts=lambda row: row < 3)

    assert newest() == [3, 2, 1]
    read.rows.insert(0, 4)

    assert newest() == [4, 3, 2]
    assert read.reads == [None, 2]


@pytest.mark.parametrize(
    ("kind", "part", "moves"),
    [
        ("cycle.finished", "cycle", True),
        ("cycle.finished", "turn", False),
        ("turn.closed", "turn", True),
        ("messages.appended", "position", True),
        ("memory.edited", "revision", True),
        ("thread.renamed", "beside", True),
    ],
)
def test_an_event_that_is_heard_moves_what_it_names(kind, part, moves):
    thread, record = uuid4(), uuid4()
    before = known.moved(thread, [part]), known.moved(record, [part])

    known.hear({"kind": kind, "thread": str(thread), "record": str(record)})

    after = known.moved(thread, [part]), known.moved(record, [part])
    assert (after[0] != before[0], after[1] != before[1]) == (moves, moves)


@pytest.fixture
def eventful(thread):
    """Return a thread in which much has happened, and its memory."""
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    talk(thread, 40)
    write(record, 1, 40, since=1, cycle=ran(record, last_position=40))
    Turn.objects.create(
        thread=thread, number=1, status="done", prompt="x", first_position=1, last_position=2,
        finished_at=timezone.now(),
    )  # fmt: skip
    return thread


def shown(thread):
    """Return the regions of an open page, and how many statements they took."""
    (stamp,) = stamps([thread.pk]).values()
    with CaptureQueriesContext(connection) as captured:
        found = live.render(thread.pk, NAMES, now=timezone.now(), stamp=stamp)
    return {name: each.etag for name, each in found.items()}, len(captured)


def fresh(thread):
    rendered = live.render(thread.pk, NAMES, now=timezone.now())
    return {name: each.etag for name, each in rendered.items()}


@pytest.mark.django_db
def test_an_open_page_reads_less_and_shows_the_same(eventful):
    first, at_first = shown(eventful)
    again, later = shown(eventful)

    assert first == again == fresh(eventful)
    assert later <= at_first / 2


@pytest.mark.django_db
def test_what_moves_is_shown_whether_or_not_an_event_is_heard(eventful):
    record = MemoryRecord.objects.get()
    for act in (
        lambda: talk(eventful, 1),
        lambda: write(record, 41, 44, cycle=ran(record, last_position=44)),
        lambda: Turn.objects.create(thread=eventful, number=2, status="waiting", prompt="y"),
        lambda: MemoryRecord.objects.update(revision=2),
        lambda: Thread.objects.update(title="Another"),
    ):
        act()

        assert shown(eventful)[0] == fresh(eventful)


@pytest.mark.django_db
def test_what_a_model_wrote_is_read_once_until_a_person_changes_memory(eventful):
    record = MemoryRecord.objects.get()
    shown(eventful)
    Line.objects.update(text="Changed behind the page's back")

    write(record, 41, 44, cycle=ran(record, last_position=44))
    MemoryRecord.objects.update(revision=2)
    assert shown(eventful)[0]["entries"] != fresh(eventful)["entries"]

    MemoryRecord.objects.update(revision=3, epoch=1)
    assert shown(eventful)[0] == fresh(eventful)


@pytest.mark.django_db
def test_a_cycle_that_comes_to_something_is_shown_anew(eventful):
    record = MemoryRecord.objects.get()
    cycle = ran(record, status="failed", last_position=44)
    shown(eventful)
    Cycle.objects.filter(pk=cycle.pk).update(status="running", finished_at=None)
    assert shown(eventful)[0] == fresh(eventful)

    Cycle.objects.filter(pk=cycle.pk).update(status="done", finished_at=timezone.now())
    assert shown(eventful)[0] == fresh(eventful)
    write(record, 41, 44, cycle=cycle)

    MemoryRecord.objects.update(revision=2)
    assert shown(eventful)[0] == fresh(eventful)


@pytest.mark.django_db
def test_a_fork_is_shown_on_the_page_it_was_made_from(eventful, profile):
    shown(eventful)
    fork = start(eventful.resource, profile)
    Thread.objects.filter(pk=fork.pk).update(parent=eventful, fork_position=4)

    assert shown(eventful)[0] == fresh(eventful)


@pytest.mark.django_db
def test_lines_are_shown_on_their_days_once_the_time_zone_is_another(eventful):
    before = ZoneInfo(eventful.resource.time_zone)
    Line.objects.update(said_at=datetime(2026, 3, 2, tzinfo=before))
    shown(eventful)

    Resource.objects.update(time_zone="Asia/Tokyo")
    move_to_zone(eventful.resource_id, before)

    assert shown(eventful)[0] == fresh(eventful)
