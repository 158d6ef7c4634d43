"""A long log is shown by parts of a bounded size."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from agents.entries import Said
from agents.log import log_of
from agents.markers import Marker
from agents.models import RequestSnapshot, Turn
from agents.page import LONGEST, WINDOW, Scene
from memory.messages import user_prompt
from memory.models import MemoryRecord, Revision
from memory.services.append import append
from tests.agents.test_page import talk

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MOST = LONGEST + 2 * WINDOW


@pytest.fixture
def long(thread):
    append(thread.pk, [user_prompt(f"Question {n}", AT) for n in range(1, MOST + 1)], at=AT)
    return thread


def part(thread, first):
    """Return what is shown from a position on, beside the newest messages."""
    newest = Scene(thread.pk, timezone.now()).first
    return log_of(Scene(thread.pk, timezone.now(), start=first), before=newest)


def positions(log):
    return [entry.position for entry in log.entries if isinstance(entry, Said)]


def test_from_an_old_message_on_no_more_is_shown_than_a_few_windows(long):
    log = part(long, 1)
    assert positions(log) == list(range(1, LONGEST + 1))
    # The next part begins with the end of this one, so that nobody loses their place.
    assert log.newer_from == LONGEST - WINDOW + 1
    assert log.earlier_from == 0


def test_a_part_that_meets_the_newest_messages_leads_to_none_between(long):
    log = part(long, part(long, 1).newer_from)
    assert positions(log)[-1] == MOST - WINDOW
    assert log.newer_from == 0
    exactly = part(long, MOST - WINDOW - LONGEST + 1)
    assert (len(positions(exactly)), exactly.newer_from) == (LONGEST, 0)


def test_what_happened_after_a_part_is_not_told_at_its_end(long):
    record = MemoryRecord.objects.create(resource=long.resource, thread=long, revision=1)
    told = {"cause": Revision.Cause.NOTE, "tokens_before": 0, "tokens_after": 0}
    Revision.objects.create(record=record, number=1, created_at=timezone.now(), **told)
    later = [user_prompt("Later", AT + timedelta(days=9000))]
    append(long.pk, later, at=AT + timedelta(days=9000))
    assert not [entry for entry in part(long, 1).entries if isinstance(entry, Marker)]


def test_a_turn_that_goes_on_after_a_part_has_no_footers_in_it(thread):
    talk(thread, LONGEST)
    last = LONGEST + 2
    turn = Turn.objects.create(
        thread=thread, number=1, status="done", first_position=1, last_position=last
    )
    for step, reply in enumerate(range(2, last + 1, 2), 1):
        RequestSnapshot.objects.create(turn=turn, step=step, revision=0, total=reply, blocks=[])
    shown = [e.footer for e in part(thread, 1).entries if isinstance(e, Said) and e.footer]
    assert shown == []
