from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.services.thread import start
from memory.dispatch import cycles as switch
from memory.llm import ModelUnavailable
from memory.models import Cycle, MemoryRecord, Observation, Revision, Thread
from memory.services import cycles, kept, observe, sweep
from memory.services.look import look
from memory.services.sweep import AGAIN, MARGIN, Sweep
from memory.verify.run import verify

from . import play

pytestmark = pytest.mark.django_db(transaction=True)

PAUSE = 300


class Bell:
    """Remember which threads were woken."""

    def __init__(self):
        self.rung = []

    def wake(self, thread_id):
        self.rung.append(thread_id)

    def heard(self):
        """Return what was heard since the last time."""
        rung, self.rung = self.rung, []
        return rung


@pytest.fixture
def bell():
    bell = Bell()
    previous = switch.use(bell)
    yield bell
    switch.use(previous)


def later(seconds):
    return timezone.now() + timedelta(seconds=seconds)


def options(profile, **changes):
    profile.memory_options = {**profile.memory_options, **changes}
    profile.save()


def causes():
    return list(Revision.objects.order_by("number").values_list("cause", "trigger"))


def sound():
    return verify().violations == ()


# what is looked at


def test_a_thread_is_looked_at_once_for_each_change(thread, bell):
    once = Sweep()
    play.talk(thread, 1)
    now = timezone.now()
    once(now)
    assert bell.heard() == [thread.pk]
    once(now + timedelta(seconds=10))
    assert bell.heard() == []

    play.talk(thread, 1)
    once(now + timedelta(seconds=20))
    assert bell.heard() == [thread.pk]
    MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    once(now + timedelta(seconds=30))
    assert bell.heard() == [thread.pk]


def test_after_a_while_it_is_looked_at_again_in_case_the_wake_up_was_lost(thread, bell):
    once, now = Sweep(), timezone.now()
    play.talk(thread, 1)
    once(now)
    bell.heard()
    once(now + AGAIN + timedelta(seconds=1))
    assert bell.heard() == [thread.pk]


def test_a_process_that_just_started_looks_at_all_of_them_page_by_page(
    thread, resource, profile, bell
):
    threads = {start(resource, profile).pk for _ in range(sweep.MOST_THREADS)} | {thread.pk}
    once, now = Sweep(), later(2 * MARGIN.total_seconds())
    once(now)
    assert len(bell.rung) == sweep.MOST_THREADS
    once(now + timedelta(seconds=10))
    assert sorted(bell.heard()) == sorted(threads)
    once(now + timedelta(seconds=20))
    assert bell.heard() == []


def test_what_rests_for_long_or_does_not_remember_is_left_alone(thread, bell):
    once = Sweep()
    Thread.objects.filter(pk=thread.pk).update(remembers=False)
    once(timezone.now())
    Thread.objects.filter(pk=thread.pk).update(remembers=True)
    once(timezone.now() + sweep.RECENT)
    assert bell.heard() == []


def test_when_nothing_happened_a_sweep_is_a_few_statements(thread, resource, profile, bell):
    options(profile, activate_after_idle=PAUSE)
    for _ in range(50):
        start(resource, profile)
    play.talk(thread, 4)
    play.buffer_all(thread)
    once, now = Sweep(), timezone.now()
    once(now)
    with CaptureQueriesContext(
        connection,
    ) as sent:
        once(now + timedelta(seconds=10))
    assert len(sent) <= 4


def test_threads_that_share_a_record_are_looked_at_once(resource, profile, bell):
    options(profile, scope="resource")
    threads = [start(resource, profile) for _ in range(5)]
    for each in threads:
        play.talk(each, 1)
    look(threads[0].pk)
    once, now = Sweep(), timezone.now()
    once(now)
    assert len(bell.heard()) == 1

    play.talk(threads[2], 1)
    once(now + timedelta(seconds=10))
    assert len(bell.heard()) == 1


def test_a_lapsed_cycle_is_ended_and_its_thread_looked_at(thread, bell):
    once = Sweep()
    play.talk(thread, 2)
    once(timezone.now())
    claimed = observe.claim(thread.pk)
    play.lapse(claimed.cycle)
    bell.heard()

    assert once(timezone.now()) == 1
    assert bell.heard() == [thread.pk]
    assert Cycle.objects.get().status == "failed"


def test_a_lane_that_rests_is_woken_when_its_rest_is_over_and_not_before(thread, bell):
    once, now = Sweep(), timezone.now()
    play.talk(thread, 2)
    claimed = observe.claim(thread.pk)
    once(now)
    cycles.fail(claimed.cycle, ModelUnavailable("It is not set up."))
    bell.heard()
    once(now)
    assert bell.heard() == []

    play.rested(claimed.cycle)
    once(now)
    assert bell.heard() == [thread.pk]
    play.buffer(thread)
    once(now)
    assert bell.heard() == []


# what is shown early


def test_an_idle_thread_shows_what_waits_without_its_next_prompt(thread, profile, bell):
    options(profile, activate_after_idle=PAUSE)
    play.talk(thread, 3)
    play.buffer_all(thread)
    once = Sweep()
    once(later(PAUSE - 10))
    assert causes() == []

    once(later(PAUSE + 1))
    assert causes() == [("activate", "idle")]
    assert look(thread.pk).lines
    assert sound()


def test_what_waits_is_shown_once_each_time_the_thread_rests(thread, profile, bell):
    options(profile, activate_after_idle=PAUSE)
    for _ in range(2):
        play.talk(thread, 2)
        play.buffer_all(thread)
    assert Observation.objects.count() == 2
    once = Sweep()
    for seconds in (1, 11, 21):
        once(later(PAUSE + seconds))
    Sweep()(later(PAUSE + 31))  # Another process, or this one after a restart.
    assert causes() == [("activate", "idle")]

    play.say(thread, play.question())
    once(later(PAUSE + 1))
    assert causes() == [("activate", "idle")] * 2
    assert sound()


def test_after_a_restart_what_waited_all_the_time_is_found(thread, profile, bell):
    options(profile, activate_after_idle="5m")
    play.talk(thread, 3)
    play.buffer_all(thread)
    kept.forget_everything()
    Sweep()(later(3 * 24 * 3600))

    assert causes() == [("activate", "idle")]


@pytest.mark.parametrize("pause", [False, 3600])
def test_without_a_pause_or_before_its_end_nothing_is_shown_early(thread, profile, bell, pause):
    options(profile, activate_after_idle=pause)
    play.talk(thread, 3)
    play.buffer_all(thread)
    Sweep()(later(PAUSE + 1))
    assert causes() == []


def test_auto_means_as_long_as_the_actors_provider_keeps_a_prompt(thread, profile, bell):
    options(profile, activate_after_idle="auto")
    profile.model = "groq:llama"
    profile.save()
    play.talk(thread, 3)
    play.buffer_all(thread)
    once = Sweep()
    once(later(2 * 3600 - 60))
    assert causes() == []
    once(later(2 * 3600 + 60))
    assert causes() == [("activate", "idle")]


def test_a_records_own_pause_counts(thread, bell):
    play.talk(thread, 3)
    play.buffer_all(thread)
    MemoryRecord.objects.update(config={"activate_after_idle": 60})
    Sweep()(later(61))
    assert causes() == [("activate", "idle")]


def test_a_shared_record_rests_only_when_all_its_threads_do(resource, profile, bell):
    options(profile, scope="resource", activate_after_idle=PAUSE)
    quiet, lively = start(resource, profile), start(resource, profile)
    play.talk(quiet, 3)
    play.buffer_all(quiet)
    past = timezone.now() - timedelta(hours=1)
    Thread.objects.filter(pk=quiet.pk).update(last_active_at=past)
    play.talk(lively, 1)
    once = Sweep()
    once(timezone.now())
    assert causes() == []
    once(later(PAUSE + 1))
    assert causes() == [("activate", "idle")]
    assert sound()


def waiting_reflection(thread, output=play.joined):
    """Talk until a reflection waits."""
    while not Observation.objects.filter(kind="reflection").exists():
        play.talk(thread, 1)
        play.buffer_all(thread)
        play.request(thread)
        play.condense(thread, output=output)
    return Observation.objects.get(kind="reflection")


def test_a_waiting_reflection_has_a_pause_of_its_own(thread, profile, bell):
    options(profile, activate_after_idle=PAUSE, observation_tokens=500)
    waiting = waiting_reflection(thread)
    number = MemoryRecord.objects.get().revision
    Sweep()(later(PAUSE + 1))
    waiting.refresh_from_db()
    assert waiting.since is None

    options(profile, activate_after_idle=False, reflection_activate_after_idle=PAUSE)
    Sweep()(later(PAUSE + 2))
    waiting.refresh_from_db()
    assert waiting.since is not None
    assert causes()[-1] == ("reflect", "idle")
    assert MemoryRecord.objects.get().revision > number
    assert sound()


def test_a_reflection_is_not_shown_early_where_too_little_detail_would_remain(
    thread, profile, bell
):
    options(profile, reflection_activate_after_idle=PAUSE, observation_tokens=600)
    long = play.words(260)
    waiting = waiting_reflection(thread, lambda claimed: play.reflected(play.line(long, 1)))
    assert waiting.since is None
    Sweep()(later(PAUSE + 1))

    waiting.refresh_from_db()
    assert waiting.since is None
