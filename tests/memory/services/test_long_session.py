"""One conversation of many turns, in processes that come and go."""

import pytest
from django.db import transaction

from memory.models import Cycle, MemoryRecord, Observation, Revision
from memory.services import kept
from memory.services.look import look
from memory.services.prepare import request_blocks
from tests.memory.services.oracle import violations
from tests.memory.services.play import (
    AT,
    answer,
    buffer,
    buffer_all,
    condense,
    question,
    request,
    say,
    talk,
    words,
)

pytestmark = pytest.mark.django_db

TABLES = (MemoryRecord, Observation, Revision, Cycle)


def rows():
    return [list(model.objects.order_by("pk").values()) for model in TABLES]


def test_in_thirty_five_turns_everything_happens_and_the_request_stays_bounded(thread):
    bound = 0
    for turn in range(35):
        say(thread, question(words(60)))
        prepared = request(thread)
        if prepared.wait_seconds:
            buffer(thread, waiting=True)
            prepared = request(thread, may_wait=False)
        thresholds = prepared.view.options.thresholds()
        bound = max(bound, prepared.tokens)
        say(thread, answer(words(60)))
        if not 10 <= turn < 20:  # For a while the background does not keep up.
            buffer_all(thread)
        condense(thread)

    kinds = set(Cycle.objects.filter(status="done").values_list("kind", flat=True))
    assert {"buffer", "observe"} <= kinds
    assert kinds & {"buffer_reflection", "reflect"}
    assert {"activate", "observe", "reflect"} <= set(
        Revision.objects.values_list("cause", flat=True)
    )
    assert bound < 2 * (thresholds.ceiling + thresholds.reflect_ceiling)
    assert violations(thread.pk) == []


def test_a_new_process_goes_on_where_the_last_one_stood(thread):
    talk(thread, 2)
    first = buffer(thread)
    kept.forget_everything()
    assert buffer(thread) is None

    talk(thread, 2)
    kept.forget_everything()
    assert buffer(thread).first_position == first.last_position + 1


def test_a_record_whose_making_failed_is_made_by_the_next_who_looks(thread):
    with transaction.atomic():
        look(thread.pk)
        transaction.set_rollback(True)
    assert not MemoryRecord.objects.exists()

    talk(thread, 2)
    assert buffer(thread) is not None
    assert MemoryRecord.objects.count() == 1


def test_what_the_actor_would_be_sent_can_be_read_without_changing_anything(thread):
    talk(thread, 3)
    buffer_all(thread)
    request(thread)
    talk(thread, 6)
    buffer_all(thread)
    (prompt,) = say(thread, question())
    before = rows()

    blocks = request_blocks(look(thread.pk), prompt_position=prompt, at=AT)

    assert [block.kind for block in blocks].count("prompt") == 1
    assert rows() == before
