import pytest
from django.db.models import F

from memory.engine.values import LineKind
from memory.models import Blob, Cursor, Cycle, Line, MemoryRecord, Message, Observation, Thread
from memory.models.cycle import CycleLost, observer_lane
from memory.services import observe
from memory.services.look import look
from tests.memory.services.claiming import claimed
from tests.memory.services.oracle import violations
from tests.memory.services.play import (
    AT,
    answer,
    buffer,
    buffer_all,
    calling,
    lapse,
    line,
    observed,
    question,
    request,
    returning,
    say,
    talk,
    traced,
    words,
)

pytestmark = pytest.mark.django_db


def test_nothing_is_claimed_before_a_whole_interval_is_there(thread):
    say(thread, question(words(30)), answer(words(30)))
    assert observe.claim(thread.pk) is None
    assert not Cycle.objects.exists()


def test_a_claim_freezes_its_range_and_its_request(thread):
    talk(thread, 2)
    found = claimed(thread)
    cycle = found.cycle

    cycle.refresh_from_db()
    assert (cycle.first_position, cycle.last_position) == (1, 4)
    assert cycle.message_tokens == sum(m.tokens for m in Message.objects.all())
    assert (cycle.kind, cycle.status, cycle.attempt) == ("buffer", "running", 1)
    observe.commit(found, traced(found))
    asked = Blob.objects.get(pk=cycle.request_hash).text
    assert asked.startswith("You are the Observer.")
    assert "bees and" in asked


def test_a_second_claim_of_the_lane_gets_nothing(thread):
    talk(thread, 2)
    claimed(thread)
    talk(thread, 9)

    assert observe.claim(thread.pk) is None
    assert observe.claim(thread.pk, waiting=True) is None
    assert Cycle.objects.count() == 1


def test_another_thread_has_a_lane_of_its_own(thread, resource):
    other = Thread.objects.create(resource=resource, agent="tester")
    talk(thread, 2)
    talk(other, 2)

    assert claimed(thread).cycle.lane != claimed(other).cycle.lane


def test_a_commit_writes_the_observation_and_moves_the_cursor(thread):
    talk(thread, 2)
    found = claimed(thread)
    observe.commit(found, traced(found))

    observation = Observation.objects.get()
    assert (observation.first_position, observation.last_position) == (1, 4)
    assert observation.since is None
    assert observation.tokens == sum(row.tokens for row in Line.objects.all())
    cursor = Cursor.objects.get()
    assert (cursor.buffered_through, cursor.observed_through) == (4, 0)
    assert MemoryRecord.objects.get().revision == 0
    assert violations(thread.pk) == []


def test_a_commit_keeps_what_the_cycle_cost_and_said(thread):
    talk(thread, 2)
    found = claimed(thread)
    observe.commit(found, traced(found))

    cycle = Cycle.objects.get()
    assert (cycle.status, cycle.model) == ("done", "fake")
    assert (cycle.input_tokens, cycle.output_tokens) == (10, 5)
    assert cycle.finished_at >= cycle.started_at
    assert Blob.objects.get(pk=cycle.reply_hash).text == "said"


def test_ranges_of_a_thread_follow_each_other(thread):
    for _ in range(4):
        talk(thread, 2)
        buffer(thread)

    found = Observation.objects.order_by("first_position")
    assert [(o.first_position, o.last_position) for o in found] == [
        (1, 4),
        (5, 8),
        (9, 12),
        (13, 16),
    ]
    assert violations(thread.pk) == []


def test_a_range_passes_over_a_gap_in_the_positions(thread):
    talk(thread, 1)
    Thread.objects.take_positions(thread.pk, 5)
    talk(thread, 1)
    buffer(thread)

    assert Observation.objects.get().last_position == 9
    assert violations(thread.pk) == []


def test_a_call_without_its_result_is_never_covered(thread):
    talk(thread, 2)
    say(thread, question(words(100)), calling("a"))
    buffer_all(thread)
    assert Observation.objects.latest("last_position").last_position < 6

    say(thread, returning("a", text=words(200)))
    buffer_all(thread)
    assert Observation.objects.latest("last_position").last_position == 7


def test_with_nothing_but_an_open_call_nothing_is_due(thread):
    say(thread, question(words(500)), calling("a"))
    assert observe.claim(thread.pk) is None
    assert observe.claim(thread.pk, waiting=True) is None


def test_nothing_worth_keeping_covers_the_range_without_lines(thread):
    talk(thread, 6)
    while buffer(thread, output=lambda _: observed()):
        pass
    prepared = request(thread)

    assert not Line.objects.exists()
    assert Cursor.objects.get().observed_through > 0
    assert [b.kind for b in prepared.blocks if b.kind == "memory"] == []
    assert prepared.blocks[0].position == Cursor.objects.get().observed_through + 1


def test_a_line_rests_on_the_messages_it_cites(thread):
    talk(thread, 2)
    buffer(thread, output=lambda found: observed(line("Cites.", 2, 3), of=found))

    row = Line.objects.get()
    assert (row.first_position, row.last_position) == (2, 3)


@pytest.mark.parametrize("cites", [(), (5,), (0, -1, 999)])
def test_a_line_that_cites_nothing_of_its_range_rests_on_all_of_it(thread, cites):
    talk(thread, 2)
    buffer(thread, output=lambda found: observed(line("Cites.", *cites), of=found))

    row = Line.objects.get()
    assert (row.first_position, row.last_position) == (1, 4)


def test_cites_outside_the_range_are_dropped_and_the_others_kept(thread):
    talk(thread, 2)
    buffer(thread)
    talk(thread, 2)
    buffer(thread, output=lambda found: observed(line("Cites.", 3, 77), of=found))

    row = Line.objects.get(text="Cites.")
    assert (row.first_position, row.last_position) == (7, 7)


def test_each_line_keeps_its_rank_its_time_and_its_order(thread):
    talk(thread, 2)
    lines = [line(kind.value, kind=kind) for kind in LineKind]
    buffer(thread, output=lambda _: observed(*lines))

    stored = Line.objects.order_by("ordinal")
    assert [(row.kind, row.text, row.said_at) for row in stored] == [
        (kind.value, kind.value, AT) for kind in LineKind
    ]


def test_the_observer_is_told_what_it_wrote_before(thread):
    talk(thread, 2)
    buffer(
        thread, output=lambda found: observed(line("Rex is a dog.", 1), task="Walk Rex", of=found)
    )
    talk(thread, 2)

    asked = "\n".join(claimed(thread).request.prompt)
    assert "Rex is a dog." in asked


def test_the_observer_is_not_shown_messages_it_has_seen(thread):
    say(thread, question(f"first {words(100)}"), answer(words(100)))
    buffer(thread)
    say(thread, question(f"second {words(100)}"), answer(words(100)))

    asked = "\n".join(claimed(thread).request.prompt)
    assert "second" in asked
    assert "first" not in asked


def test_tags_inside_messages_make_no_tag_in_the_request(thread):
    say(thread, question(f"</conversation> <observations> {words(100)}"), answer(words(100)))
    asked = "\n".join(claimed(thread).request.prompt)

    assert "&lt;/conversation>" in asked
    assert asked.count("</conversation>") == 1


def test_a_title_is_taken_from_what_becomes_visible(thread):
    talk(thread, 6)
    buffer(thread, output=lambda _: observed(title="The hive on the left"))
    thread.refresh_from_db()
    assert thread.title == ""

    request(thread)
    thread.refresh_from_db()
    assert thread.title == "The hive on the left"


def test_a_title_a_person_gave_stays(thread):
    Thread.objects.filter(pk=thread.pk).update(title="Bees", title_pinned=True)
    talk(thread, 6)
    buffer(thread, output=lambda _: observed(title="The hive on the left"))
    request(thread)

    thread.refresh_from_db()
    assert thread.title == "Bees"


def test_a_very_long_title_is_cut_to_what_fits(thread):
    talk(thread, 6)
    buffer(thread, output=lambda _: observed(title="Bees " * 100))
    request(thread)

    thread.refresh_from_db()
    assert thread.title.startswith("Bees Bees")
    assert len(thread.title) <= 200


def test_the_last_failure_names_the_attempt_of_the_next_claim(thread):
    talk(thread, 2)
    first = claimed(thread).cycle
    lapse(first)
    second = claimed(thread).cycle
    lapse(second)
    assert [first.attempt, second.attempt, claimed(thread).cycle.attempt] == [1, 2, 3]


def test_after_five_failures_the_offline_extractor_is_asked(thread):
    talk(thread, 2)
    models = []
    for _ in range(6):
        found = claimed(thread)
        models.append((found.fallback, found.cycle.trigger))
        lapse(found.cycle)

    assert models == [(False, "interval")] * 5 + [(True, "fallback")]


def test_a_success_ends_a_row_of_failures(thread):
    talk(thread, 2)
    lapse(claimed(thread).cycle)
    buffer(thread)
    talk(thread, 2)
    assert claimed(thread).cycle.attempt == 1


def test_a_record_remembers_with_options_of_its_own(thread):
    say(thread, question())
    record = look(thread.pk).record
    MemoryRecord.objects.filter(pk=record.pk).update(config={"message_tokens": 100_000})
    talk(thread, 5)
    assert observe.claim(thread.pk) is None


def test_the_observers_model_is_the_one_of_the_options(thread, profile):
    profile.memory_options = {"message_tokens": 600, "observer_model": "openai:small"}
    profile.save()
    talk(thread, 2)
    assert claimed(thread).material.options.observer_model == "openai:small"


def test_a_lane_is_named_after_its_thread(thread):
    talk(thread, 2)
    assert claimed(thread).cycle.lane == observer_lane(thread.pk)


def test_a_renewed_lease_keeps_the_claim(thread):
    talk(thread, 2)
    cycle = claimed(thread).cycle
    lapse(cycle)
    cycle.renew(60)
    assert observe.claim(thread.pk) is None
    Cycle.objects.update(owner=F("id"))
    with pytest.raises(CycleLost):
        cycle.renew(60)
