from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.lab.models import Entry
from agents.lab.scenario import read
from agents.lab.stage import open_lab
from agents.models import RequestSnapshot, Turn
from memory.models import Message, Thread
from memory.services.look import look
from memory.verify.run import verify

from .conftest import TEAM
from .test_faults import SAY, WAIT, run

pytestmark = pytest.mark.django_db(transaction=True)

DAY = {"rest": 1440}


async def test_what_was_said_lies_a_day_back_and_nothing_else_changes(lab, pane):
    await run(lab, SAY, WAIT, {"observe": "A"})
    before = await sync_to_async(list)(Message.objects.values("position", "text", "created_at"))
    said = (await sync_to_async(look)(pane("A").thread_id)).lines[0].said_at

    entries = await run(lab, DAY)

    assert entries[-1].text == "it is 24 hours later now"
    after = await sync_to_async(list)(Message.objects.values("position", "text", "created_at"))
    assert [{**row, "created_at": row["created_at"] + timedelta(days=1)} for row in after] == before
    view = await sync_to_async(look)(pane("A").thread_id)
    assert view.lines[0].said_at == said - timedelta(days=1)
    assert not (await sync_to_async(verify)()).violations


async def test_all_panes_rest_and_nobody_else(lab, pane, thread):
    await run(lab, SAY, WAIT)
    others = await Thread.objects.aget(pk=thread.pk)

    await run(lab, DAY)

    now = timezone.now()
    for letter in "ABC":
        rested = await Thread.objects.aget(pk=pane(letter).thread_id)
        assert now - rested.last_active_at > timedelta(hours=23)
    assert (await Thread.objects.aget(pk=thread.pk)).last_active_at == others.last_active_at


async def test_the_next_message_comes_after_a_gap(db):
    gaps = await sync_to_async(open_lab)(read(f"{TEAM}options: {{temporal_markers: true}}\n"))
    later = {"expect": {"pane": "A", "contains": "1 day"}}
    entries = await run(gaps, SAY, WAIT, SAY, WAIT, later, DAY, SAY, WAIT, later)
    assert [str(entry.state) for entry in entries if entry.step == later] == ["failed", "passed"]


async def test_who_is_being_answered_is_not_put_to_rest(lab, pane):
    entries = await run(lab, SAY, DAY)
    assert entries[-1].state == Entry.State.FAILED
    assert "wait first" in entries[-1].text


async def test_turns_and_what_they_sent_rest_with_them(lab):
    await run(lab, SAY, WAIT, DAY)
    turn = await Turn.objects.aget()
    sent = await RequestSnapshot.objects.afirst()
    assert timezone.now() - turn.finished_at > timedelta(hours=23)
    assert turn.started_at <= sent.created_at <= turn.finished_at
    assert turn.created_at <= turn.started_at
