"""When messages were stored, and what lanes and curves make of it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from agents.services.fork import fork
from agents.studio.timeline.events import Filters, Scope
from agents.studio.timeline.history import History
from agents.studio.timeline.reading import Timeline
from memory.models import Message
from memory.models.state import read_state

from .lives import say

pytestmark = pytest.mark.django_db(transaction=True)


def history(thread):
    return History(Scope(read_state(thread.pk).record, [thread.pk]), thread)


def test_the_raw_level_at_the_end_is_what_is_raw_now(lived):
    say(lived, 4)
    raw = sum(Message.objects.above(lived.pk, 6).values_list("tokens", flat=True))
    assert history(lived).points[-1].raw == raw > 0


def test_the_remembered_level_is_what_each_revision_says(lived):
    found = history(lived)
    assert found.points[-1].remembered == found.steps[-1].after


def test_a_replayed_recording_is_drawn_when_it_was_replayed(thread):
    long_ago = datetime(2025, 1, 5, tzinfo=UTC)
    turn = say(thread, 1)
    Message.objects.filter(thread=thread).update(created_at=long_ago)
    first, second = history(thread).arrivals
    assert first.at == turn.started_at
    assert second.at == turn.finished_at


def test_nothing_of_a_fork_is_drawn_before_it_began(lived):
    child = fork(lived.pk, 4)
    assert min(each.at for each in history(child).arrivals) >= child.created_at


def test_what_a_fork_took_over_is_covered_from_its_beginning(lived):
    child = fork(lived.pk, 6)
    assert history(child).points[-1].raw == 0


def test_lanes_tell_what_is_in_them_and_what_is_under_way(lived):
    turn = say(lived, 4, status="waiting")
    type(turn).objects.filter(pk=turn.pk).update(finished_at=None)
    say(lived, 5, status="failed")
    lanes = {
        lane.key: lane.says
        for lane in Timeline(lived, timezone.now(), filters=Filters()).drawing.lanes
    }
    assert lanes["turn"] == "Actor: 5 turns, 1 failed, 1 under way"
    assert lanes["edit"] == "Edits: 2 changes"


def test_a_window_begins_with_the_levels_it_begins_at(lived):
    since = timezone.now() + timedelta(hours=1)
    say(lived, 4, at=since + timedelta(minutes=1))
    shown = Timeline(lived, timezone.now(), filters=Filters(since=since))
    first = shown.drawing.points[0]
    assert first.at == since
    assert first.remembered == history(lived).steps[-1].after
