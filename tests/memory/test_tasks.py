import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from uuid import uuid4

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from memory.messages import user_prompt
from memory.models import Cycle
from memory.publish import Rest
from memory.services.append import append
from memory.tasks import CeleryDispatcher, run_observers, run_reflectors, wake


@pytest.fixture
def offline(settings):
    settings.MEMORY_MODELS = {"observer": "offline", "reflector": "offline"}
    settings.OFFLINE_DELAY = 0


@pytest.mark.django_db(transaction=True)
def test_a_task_runs_what_is_due_and_a_second_delivery_finds_nothing(thread, offline):
    said = "My sister Nora moved to Lisbon on 3 May 2025 and works there as a nurse."
    now = timezone.now()
    append(thread.pk, [user_prompt(f"{n}. {said}", now) for n in range(30)], at=now)

    run_reflectors(str(thread.pk))
    assert not Cycle.objects.exists()
    run_observers(str(thread.pk))
    done = Cycle.objects.filter(status=Cycle.Status.DONE).count()
    run_observers(str(thread.pk))

    assert done > 0
    assert Cycle.objects.count() == done


def test_a_wake_up_carries_the_thread_and_nothing_else():
    queued, thread_id = [], uuid4()

    with ThreadPoolExecutor(1) as sender:
        CeleryDispatcher([queued.append], sender).wake(thread_id)

    assert queued == [str(thread_id)]


def test_who_wakes_workers_does_not_wait_for_the_broker():
    answered, told = Event(), []

    def ask(thread_id):
        told.append(answered.wait(30))

    with ThreadPoolExecutor(1) as sender:
        CeleryDispatcher([ask], sender).wake(uuid4())
        assert told == []
        answered.set()

    assert told == [True]


def test_a_broker_that_is_away_is_named_once_and_then_left_alone(caplog):
    asked = []

    def refuse(thread_id):
        asked.append(thread_id)
        raise OperationalError("no route to the broker")

    rest = Rest()
    with caplog.at_level(logging.WARNING, logger="memory.tasks"):
        wake(refuse, "one", rest)
        wake(refuse, "two", rest)

    assert asked == ["one"]
    assert caplog.text.count("waits for the sweep") == 1


def test_a_broker_that_was_away_is_asked_again_after_a_rest():
    asked, rest = [], Rest(seconds=0)
    rest.begin()

    wake(asked.append, "one", rest)

    assert asked == ["one"]
