"""What is tried at the same instant is judged by rows; a planted fault is found by each check."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.lab import checks
from agents.lab.matrix import Place
from memory.models import Cycle
from memory.services.change import Stale
from memory.services.look import look
from memory.services.note import note
from memory.verify import Report
from memory.verify.report import Violation

from .test_run import LONG, SAID, run, say, states

pytestmark = pytest.mark.django_db(transaction=True)


async def test_of_two_changes_at_the_same_instant_one_is_refused(lab, pane):
    view = await sync_to_async(look)(pane("A").thread_id)
    await sync_to_async(note)(view.record.pk, "The fitter comes on Monday.")
    clash = {"pane": "A", "line": "The fitter", "texts": ["On Tuesday.", "On Friday."]}
    *_, entry = await run(lab, {"collide": clash})
    assert entry.state == "passed", entry.text
    assert "came first; the other was refused" in entry.text


@pytest.mark.parametrize("won", [0, 2])
def test_changes_that_are_all_taken_or_all_refused_fail(won):
    tries = [checks.Try(None, text, None) for text in ("one", "two")]
    for each in tries[:won]:
        each.won = object()
    passed, said = checks.one_won(tries)
    assert not passed
    assert f"{won} of 2" in said


def test_a_refusal_that_tells_of_another_text_fails():
    won = checks.Try(None, "one", None, won=object())
    lost = checks.Try(None, "two", None, refusal=Stale("Too late.", yours="two", current=None))
    passed, said = checks.one_won([won, lost])
    assert not passed
    assert "without being told what the line says now" in said


async def test_whoever_observes_after_a_death_takes_over_and_nothing_is_doubled(lab, pane):
    entries = await run(lab, {"fill": {"pane": "A"}}, {"crash": "A"}, {"check": "A"})
    assert states(entries) == ["done", "done", "passed"]
    assert await Cycle.objects.running().filter(thread=pane("A").thread_id).acount() == 1
    entries = await run(lab, {"observe": "A"}, {"check": "A"})
    assert states(entries[-2:]) == ["done", "passed"]
    assert await Cycle.objects.filter(thread=pane("A").thread_id, status="done").aexists()


async def test_where_there_is_nothing_to_observe_nobody_dies(lab):
    *_, entry = await run(lab, {"crash": "A"})
    assert entry.state == "failed"
    assert "nobody died" in entry.text


async def test_two_runs_of_one_kind_at_once_are_found(lab, pane):
    await run(lab, say("A", LONG), {"wait": 20}, {"observe": "A"})
    view = await sync_to_async(look)(pane("A").thread_id)
    sound = await sync_to_async(checks.sound)(view.record.pk)
    assert sound[0], sound[1]
    first = await Cycle.objects.filter(record=view.record.pk).afirst()
    first.pk, first.started_at = None, first.started_at + timedelta(microseconds=1)
    first.finished_at = timezone.now()
    await first.asave(force_insert=True)
    passed, said = await sync_to_async(checks.sound)(view.record.pk)
    assert not passed
    assert "at once" in said


async def test_what_the_rows_violate_fails_a_check_and_is_told(lab, pane):
    view = await sync_to_async(look)(pane("A").thread_id)
    broken = Report({}, (Violation("coverage", "Message 3 is covered twice."),))
    found = await sync_to_async(checks.sound)(view.record.pk, read=lambda record: broken)
    assert found == (False, "Message 3 is covered twice.")


async def test_a_task_of_another_conversation_in_the_next_request_is_found(lab):
    at, clean = ["Compare the quotes"], Place("messages 1", "Hello")
    led = Place("hints", "Go on: compare  the quotes.")
    kept = Place("a line of its memory", "Compare the quotes", sent=False)
    assert checks.led("A", at, [clean, kept])[0]
    passed, said = checks.led("A", at, [clean, led])
    assert not passed
    assert "stands in hints" in said


async def test_what_nobody_is_at_shows_nothing_about_bleeding(lab):
    *_, entry = await run(lab, *SAID, {"bleed": {"pane": "B", "by": "A"}})
    assert entry.state == "failed"
    assert "A is at nothing" in entry.text
