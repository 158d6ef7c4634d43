import pytest

from memory.models import Cycle, Line, MemoryRecord, Observation, ReflectionSource, Revision
from memory.models.cycle import CycleLost
from memory.models.record import CursorMoved, RecordMoved
from memory.services import kept, reflect
from memory.services.look import look
from tests.memory.services.oracle import violations
from tests.memory.services.play import (
    buffer_all,
    condense,
    edit,
    joined,
    lapse,
    line,
    reflected,
    request,
    seen,
    talk,
)

pytestmark = pytest.mark.django_db


def grow(thread, tokens, *, most=60):
    """Talk until the visible lines have so many tokens."""
    for _ in range(most):
        if look(thread.pk).tokens >= tokens:
            return
        talk(thread, 1)
        buffer_all(thread)
        request(thread)
    raise AssertionError(f"The memory never grew to {tokens} tokens.")


def claimed(thread):
    found = reflect.claim(thread.pk)
    assert found is not None
    return found


def told(thread):
    return sorted(seen(row.text for row in look(thread.pk).lines))


@pytest.fixture
def half(thread):
    """Return a thread whose memory is large enough to be condensed ahead of time."""
    grow(thread, 100)
    return thread


@pytest.fixture
def full(thread):
    """Return a thread whose memory is past the ceiling."""
    grow(thread, 240)
    return thread


def test_below_its_share_nothing_is_condensed(thread, profile):
    profile.memory_options = {"message_tokens": 600, "observation_tokens": 2000}
    profile.save()
    grow(thread, 200)
    assert reflect.claim(thread.pk) is None


def test_buffered_lines_are_not_condensed(thread):
    talk(thread, 8)
    buffer_all(thread)
    assert Line.objects.exists()
    assert reflect.claim(thread.pk) is None


def test_condensing_ahead_of_time_changes_nothing_the_actor_sees(half):
    before = [row.pk for row in look(half.pk).lines]
    reflection = condense(half)

    assert (reflection.kind, reflection.since, reflection.generation) == ("reflection", None, 0)
    assert [row.pk for row in look(half.pk).lines] == before
    assert violations(half.pk) == []


def test_condensing_ahead_of_time_happens_once(half):
    condense(half)
    assert reflect.claim(half.pk) is None


def test_a_second_claim_of_the_reflectors_lane_gets_nothing(half):
    claimed(half)
    assert reflect.claim(half.pk) is None


def test_a_waiting_reflection_takes_its_place_at_the_threshold(half):
    reflection = condense(half)
    before = told(half)
    while MemoryRecord.objects.get().generation == 0:
        talk(half, 1)
        buffer_all(half)
        request(half)

    reflection.refresh_from_db()
    assert reflection.generation == 1
    assert Revision.objects.latest("number").cause == "reflect"
    assert set(before) <= set(told(half))
    assert violations(half.pk) == []


def test_a_reflection_stands_where_its_sources_stood(half):
    reflection = condense(half)
    while MemoryRecord.objects.get().generation == 0:
        talk(half, 1)
        buffer_all(half)
        request(half)

    lines = look(half.pk).lines
    assert lines[0].observation_id == reflection.pk
    assert seen(row.text for row in lines) == sorted(seen(row.text for row in lines))


def test_past_the_ceiling_a_reflection_is_shown_at_once(full):
    before, number = told(full), MemoryRecord.objects.get().revision
    reflection = condense(full)

    assert reflection.cycle.kind == "reflect"
    assert told(full) == before
    record = MemoryRecord.objects.get()
    assert (record.revision, record.generation) == (number + 1, 1)
    revision = Revision.objects.latest("number")
    assert revision.tokens_after < revision.tokens_before
    assert violations(full.pk) == []


def test_lines_of_the_sources_are_closed_and_kept(full):
    sources = [row.pk for row in look(full.pk).lines]
    condense(full)

    number = MemoryRecord.objects.get().revision
    closed = Line.objects.filter(pk__in=sources)
    assert set(closed.values_list("until", flat=True)) == {number}
    assert closed.count() == len(sources)


def test_pinned_lines_stay_beside_the_reflection(full):
    pinned = look(full.pk).lines[2]
    Line.objects.filter(pk=pinned.pk).update(pinned=True)
    kept.forget_everything()
    found = claimed(full)
    reflect.commit(found, joined(found), 1)

    assert pinned.pk not in [row.id for row in found.lines]
    assert [row.pk for row in look(full.pk).lines if row.pinned] == [pinned.pk]


def test_what_was_activated_while_the_reflector_thought_stays(full):
    found = claimed(full)
    number = MemoryRecord.objects.get().revision
    while MemoryRecord.objects.get().revision == number:
        talk(full, 1)
        buffer_all(full)
        request(full)
    newer = Observation.objects.filter(since__gt=number)
    reflect.commit(found, joined(found), 1)

    visible = {row.observation_id for row in look(full.pk).lines}
    assert {o.pk for o in newer} <= visible
    assert violations(full.pk) == []


def test_a_reflection_of_a_reflection_keeps_what_both_covered(thread):
    for _ in range(3):
        grow(thread, 240)
        condense(thread)
    assert MemoryRecord.objects.get().generation >= 3

    links = ReflectionSource.objects.filter(observation__kind="reflection")
    assert links.exists()
    covered = look(thread.pk).observed_through
    assert told(thread) == list(range(1, covered + 1))
    assert violations(thread.pk) == []


def test_each_line_of_a_reflection_rests_on_the_messages_of_the_lines_it_cites(full):
    lines = look(full.pk).lines
    condense(full, output=lambda c: reflected(line("Two of them.", 1, 2), line("No source.")))

    two, none = look(full.pk).lines
    assert (two.first_position, two.last_position) == (
        lines[0].first_position,
        lines[1].last_position,
    )
    assert (none.first_position, none.last_position) == (None, None)


def test_an_edit_while_the_reflector_thought_makes_it_give_up(full):
    found = claimed(full)
    edit(look(full.pk).record)
    before = told(full), MemoryRecord.objects.get().revision

    with pytest.raises(RecordMoved):
        reflect.commit(found, joined(found), 1)
    assert (told(full), MemoryRecord.objects.get().revision) == before
    assert not Observation.objects.filter(kind="reflection").exists()


def test_a_waiting_reflection_is_given_up_after_an_edit(half):
    reflection = condense(half)
    record = look(half.pk).record
    edit(record)
    grow(half, 200)
    request(half)

    reflection.refresh_from_db()
    assert reflection.since is None
    assert reflection.discarded_at is not None
    assert MemoryRecord.objects.get().generation == 0
    assert violations(half.pk) == []


def test_after_a_reflection_was_given_up_the_lines_are_condensed_anew(half):
    condense(half)
    edit(look(half.pk).record)
    grow(half, 200)
    request(half)
    assert condense(half) is not None
    assert violations(half.pk) == []


def test_the_old_owner_of_a_lapsed_reflection_writes_nothing(full):
    first = claimed(full)
    lapse(first.cycle)
    second = claimed(full)

    with pytest.raises(CycleLost):
        reflect.commit(first, joined(first), 1)
    assert not Observation.objects.filter(kind="reflection").exists()
    reflect.commit(second, joined(second), 1)
    assert violations(full.pk) == []


def test_lines_that_were_condensed_meanwhile_are_not_condensed_twice(full):
    late = claimed(full)
    # A claim can be decided on a view that is past when its row is inserted.
    Cycle.objects.filter(lane="reflector").update(lane="elsewhere")
    condense(full)
    before = told(full), MemoryRecord.objects.get().revision

    with pytest.raises(CursorMoved):
        reflect.commit(late, joined(late), 1)
    assert (told(full), MemoryRecord.objects.get().revision) == before
    assert violations(full.pk) == []


def test_no_second_reflection_waits_for_the_same_lines(half):
    late = claimed(half)
    Cycle.objects.filter(lane="reflector").update(lane="elsewhere")
    condense(half)

    with pytest.raises(CursorMoved):
        reflect.commit(late, joined(late), 1)
    assert Observation.objects.waiting_reflections(look(half.pk).record.pk).count() == 1


def test_a_cycle_says_what_it_condensed(full):
    before = look(full.pk)
    condense(full)

    cycle = Cycle.objects.get(lane="reflector")
    assert (cycle.status, cycle.thread_id, cycle.last_position) == (
        "done",
        full.pk,
        before.thread.last_position,
    )
    assert cycle.observation_tokens == before.tokens
    assert cycle.message_tokens == sum(line.tokens for line in before.lines)


def test_a_higher_level_asks_for_less(full):
    found = claimed(full)
    assert found.target < found.tokens
    texts = {
        found.request(level).instructions + str(found.request(level).prompt)
        for level in (1, 2, 3, 4)
    }
    assert len(texts) == 4
