from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from memory import telemetry
from memory.dispatch import cycles as switch
from memory.models import Cycle
from memory.models.cycle import CycleLost, observer_lane
from memory.models.state import read_state
from memory.services.again import cancel, release, try_again
from memory.services.change import Refused
from memory.services.cycles import lane_of, observer_lanes

from .editing import beekeeping, wrong

pytestmark = pytest.mark.django_db


class Bell:
    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)


@pytest.fixture
def bell():
    bell = Bell()
    previous = switch.use(bell)
    yield bell
    switch.use(previous)


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def cycle(world, **fields):
    """Return a cycle that was begun last in its lane."""
    later = timezone.now() + timedelta(minutes=1)
    return Cycle.objects.create(
        record=world.record,
        thread=world.thread,
        lane=observer_lane(world.thread.pk),
        epoch=world.record.epoch,
        **{
            "kind": Cycle.Kind.BUFFER,
            "lease_expires_at": later,
            "started_at": later,
            "first_position": 9,
            "last_position": 10,
            **fields,
        },
    )


def failed(world, **fields):
    rest = timezone.now() + timedelta(hours=1)
    now = timezone.now()
    given = {"status": "failed", "finished_at": now, "next_attempt_at": rest}
    return cycle(world, **{**given, **fields})


def test_a_failed_cycle_is_due_at_once(world, bell, django_capture_on_commit_callbacks):
    tired = failed(world)

    with django_capture_on_commit_callbacks(execute=True):
        try_again(tired.pk)

    assert Cycle.objects.filter(pk=tired.pk, next_attempt_at__lte=Now()).exists()
    assert bell.rung == [world.thread.pk]


@pytest.mark.parametrize(
    "fields", [{"next_attempt_at": None}, {"status": "discarded", "next_attempt_at": None}]
)
def test_what_rests_for_good_or_did_not_fail_is_not_tried(world, fields):
    with pytest.raises(Refused):
        try_again(failed(world, **fields).pk)


def test_what_another_cycle_followed_is_not_tried(world):
    tired = failed(world)
    failed(world, started_at=timezone.now() + timedelta(hours=1))

    with pytest.raises(Refused, match="what came after it"):
        try_again(tired.pk)


def test_a_released_cycle_writes_nothing_more(world, bell, django_capture_on_commit_callbacks):
    running = cycle(world)

    with django_capture_on_commit_callbacks(execute=True):
        release(running.pk)

    with pytest.raises(CycleLost):
        running.finish(Cycle.Status.DONE)
    running.refresh_from_db()
    assert (running.status, running.interrupted) == ("failed", True)
    assert running.finished_at is not None
    assert bell.rung == [world.thread.pk]
    assert wrong() == []


def test_what_does_not_run_is_not_released(world):
    running = cycle(world)
    release(running.pk)

    with pytest.raises(Refused, match="no lease to release"):
        release(running.pk)
    with pytest.raises(Refused, match="no such cycle"):
        release(world.thread.pk)


def test_a_cancelled_cycle_writes_nothing_more_and_its_lane_rests(
    world, bell, ada, django_capture_on_commit_callbacks
):
    running = cycle(world)

    with django_capture_on_commit_callbacks(execute=True):
        cancel(running.pk, author=ada)

    with pytest.raises(CycleLost):
        running.finish(Cycle.Status.DONE)
    running.refresh_from_db()
    assert (running.status, running.interrupted) == ("cancelled", False)
    assert running.error.startswith("Cancelled by ada.")
    lane = observer_lanes(world.record.pk, [world.thread.pk])[world.thread.pk]
    assert (lane.open, lane.resting, lane.failures) == (False, True, 0)
    assert bell.rung == []
    assert wrong() == []


def test_what_was_cancelled_counts_the_failures_before_it(world):
    running = cycle(world, attempt=3)
    cancel(running.pk)

    lane = observer_lanes(world.record.pk, [world.thread.pk])[world.thread.pk]
    running.refresh_from_db()
    assert (running.attempt, lane.failures) == (3, 2)
    assert lane_of(read_state(world.thread.pk, lanes=True).observer) == lane


def test_what_was_cancelled_is_tried_again_when_somebody_asks(world):
    running = cycle(world)
    cancel(running.pk)
    try_again(running.pk)

    assert Cycle.objects.filter(pk=running.pk, next_attempt_at__lte=Now()).exists()


def test_that_something_was_cancelled_is_counted(world, django_capture_on_commit_callbacks):
    facts = []
    before = telemetry.measure_with(facts.append)
    with django_capture_on_commit_callbacks(execute=True):
        cancel(cycle(world).pk)
    telemetry.measure_with(before)

    assert [(fact.name, fact.status) for fact in facts] == [("buffer", "cancelled")]


def test_what_does_not_run_is_not_cancelled(world):
    running = cycle(world)
    cancel(running.pk)

    with pytest.raises(Refused, match="nothing to cancel"):
        cancel(running.pk)
