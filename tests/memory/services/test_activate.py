import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from memory.engine.lifecycle import Activate, decide
from memory.models import Cursor, Line, MemoryRecord, Observation, Revision
from memory.models.record import CursorMoved, RecordMoved
from memory.services.activate import activate, activate_reflection
from memory.services.look import look
from tests.memory.services.oracle import violations
from tests.memory.services.play import buffer, buffer_all, condense, edit, observed, request, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def ready(thread):
    """Return a thread at its threshold, everything but the floor buffered."""
    talk(thread, 6)
    buffer_all(thread)
    return thread


def due(view):
    found = decide(view.snapshot(), view.options.thresholds())
    return next(decision for decision in found if isinstance(decision, Activate))


def state():
    """Return all rows that an activation writes to."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (MemoryRecord, Revision, Observation, Line, Cursor)
    ]


def test_the_rows_of_an_activation_carry_its_revision(ready):
    talk(ready, 1)
    view = look(ready.pk)
    number = activate(view, due(view)).revision

    shown = Observation.objects.filter(since=number)
    assert shown.exists()
    assert set(shown.values_list("place", flat=True)) == {number}
    assert set(Line.objects.filter(observation__in=shown).values_list("since", flat=True)) == {1}
    cursor = Cursor.objects.get()
    assert cursor.observed_through == max(o.last_position for o in shown)


def test_chunks_that_are_not_activated_stay_buffered(thread):
    for _ in range(6):
        talk(thread, 1)
        buffer(thread)
    request(thread)

    waiting = Observation.objects.filter(since__isnull=True)
    assert waiting.exists()
    assert not Line.objects.filter(observation__in=waiting, since__isnull=False).exists()
    assert violations(thread.pk) == []


def test_a_revision_tells_the_tokens_before_and_after(ready):
    view = look(ready.pk)
    decision = due(view)
    activate(view, decision)

    revision = Revision.objects.get()
    assert (revision.number, revision.cause, revision.trigger) == (1, "activate", "threshold")
    assert (revision.tokens_before, revision.tokens_after) == (0, look(ready.pk).tokens)
    assert revision.message_tokens_before == decision.tokens_before
    assert revision.message_tokens_after == decision.tokens_after
    assert decision.tokens_after == sum(m.tokens for m in look(ready.pk).raw)


def test_two_activators_with_the_same_view_make_one_revision(ready):
    first, second = look(ready.pk), look(ready.pk)
    activate(first, due(first))
    after = state()

    with pytest.raises(CursorMoved):
        activate(second, due(second))
    assert state() == after
    assert violations(ready.pk) == []


def test_the_activator_that_comes_second_prepares_the_same_request(ready):
    early = request(ready)
    assert request(ready).hash == early.hash
    assert Revision.objects.count() == 1


@pytest.mark.parametrize("change", ["edit", "close"])
def test_an_activation_decided_before_a_change_writes_nothing(ready, change):
    view = look(ready.pk)
    if change == "edit":
        edit(view.record)
    else:
        MemoryRecord.objects.update(closed_at=timezone.now())
    before = state()

    with pytest.raises(RecordMoved):
        activate(view, due(view))
    assert state() == before


def test_an_activation_that_fails_in_its_middle_leaves_nothing_half_written(ready):
    view = look(ready.pk)
    # Its number is taken, so writing the revision fails after everything else was written.
    Revision.objects.create(
        record=view.record, number=1, cause="note", tokens_before=0, tokens_after=0
    )
    before = state()

    with pytest.raises(IntegrityError), transaction.atomic():
        activate(view, due(view))
    assert state() == before


def test_an_observation_that_vanished_meanwhile_is_not_activated(ready):
    view = look(ready.pk)
    Observation.objects.filter(pk=view.buffered[0].pk).delete()
    before = state()

    with pytest.raises(CursorMoved):
        activate(view, due(view))
    assert state() == before


def test_activating_does_not_raise_the_epoch(ready):
    request(ready)
    record = MemoryRecord.objects.get()
    assert (record.revision, record.epoch, record.generation) == (1, 0, 0)


def test_no_waiting_reflection_makes_no_revision(ready):
    assert activate_reflection(look(ready.pk)) is None
    assert not Revision.objects.exists()


def test_two_activators_of_one_reflection_make_one_revision(thread):
    views = []
    while not views:
        talk(thread, 2)
        buffer_all(thread)
        request(thread)
        if condense(thread):
            views = [look(thread.pk), look(thread.pk)]
    number = activate_reflection(views[0])

    assert activate_reflection(views[1]) is None
    assert MemoryRecord.objects.get().revision == number
    assert violations(thread.pk) == []


def test_an_activated_title_of_two_letters_is_no_title(ready):
    talk(ready, 2)
    buffer(ready, output=lambda _: observed(title="ab"))
    talk(ready, 6)
    request(ready)
    ready.refresh_from_db()
    assert ready.title == ""
