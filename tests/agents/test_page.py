from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from agents import gauges, live, panel, words
from agents.log import Ended, Gap, Said, Thought, Tool, log_of
from agents.markers import Marker
from agents.models import Turn
from agents.page import WINDOW, Scene
from agents.people import markers_of
from agents.services.thread import start
from agents.stamps import stamps
from memory.messages import user_prompt
from memory.models import Cycle, Line, MemoryRecord, Observation, Revision, Thread
from memory.services.append import append

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def scene(thread, **options):
    return Scene(thread.pk, timezone.now(), **options)


def talk(thread, count, at=AT):
    """Store so many prompts, each with its answer."""
    for number in range(count):
        prompt = user_prompt(f"Question {number} about bees", at)
        answer = ModelResponse(parts=[TextPart(f"Answer {number}")], timestamp=at)
        append(thread.pk, [prompt, answer], at=at)


@pytest.fixture
def record(thread):
    return MemoryRecord.objects.create(resource=thread.resource, thread=thread)


def write(record, first, last, *, since=None, cycle=None, lines=2, tokens=10):
    """Store an observation with lines."""
    observation = Observation.objects.create(
        record=record,
        thread=record.thread,
        kind=Observation.Kind.OBSERVATION,
        first_position=first,
        last_position=last,
        message_tokens=100,
        tokens=lines * tokens,
        since=since,
        place=since,
        cycle=cycle,
    )
    for ordinal in range(lines):
        Line.objects.create(
            observation=observation,
            ordinal=ordinal,
            kind=Line.Kind.HIGH,
            text=f"Line {ordinal} of {first}–{last}",
            tokens=tokens,
            said_at=AT,
            first_position=first,
            last_position=last,
            since=since,
        )
    return observation


def ran(record, kind=Cycle.Kind.BUFFER, status=Cycle.Status.DONE, **fields):
    """Store a cycle that ended, or runs."""
    ended = {} if status == Cycle.Status.RUNNING else {"finished_at": timezone.now()}
    return Cycle.objects.create(
        record=record,
        thread=record.thread,
        lane=f"lane {Cycle.objects.count()}",
        kind=kind,
        status=status,
        epoch=0,
        lease_expires_at=timezone.now(),
        message_tokens=100,
        **{**ended, **fields},
    )


def entries(thread, kind, **options):
    return [each for each in log_of(scene(thread, **options)).entries if isinstance(each, kind)]


def test_messages_are_shown_in_order_with_who_said_them(thread):
    talk(thread, 2)

    assert [(each.by, each.text) for each in entries(thread, Said)] == [
        ("user", "Question 0 about bees"),
        ("assistant", "Answer 0"),
        ("user", "Question 1 about bees"),
        ("assistant", "Answer 1"),
    ]


def test_times_are_those_of_the_resource(thread):
    talk(thread, 1)

    assert entries(thread, Said)[0].clock == "10:00"


def test_a_tool_is_one_entry_with_its_result(thread):
    call = ToolCallPart("recall", {"query": "bees"}, "c1")
    append(thread.pk, [ModelResponse(parts=[call])], at=AT)
    assert [each.status for each in entries(thread, Tool)] == ["running"]

    append(thread.pk, [ModelRequest(parts=[ToolReturnPart("recall", "found", "c1")])], at=AT)

    (tool,) = entries(thread, Tool)
    assert (tool.tool, tool.result, tool.status) == ("recall", "found", "done")
    assert '"query": "bees"' in tool.arguments


def test_thinking_is_kept_apart_from_what_was_said(thread):
    parts = [ThinkingPart("Hm."), TextPart("Yes.")]
    append(thread.pk, [ModelResponse(parts=parts)], at=AT)

    assert [each.text for each in entries(thread, Thought)] == ["Hm."]
    assert [each.text for each in entries(thread, Said)] == ["Yes."]


def test_ten_minutes_of_silence_are_shown(thread):
    talk(thread, 1)
    talk(thread, 1, at=AT + timedelta(minutes=9))
    talk(thread, 1, at=AT + timedelta(days=2))

    assert [each.words for each in entries(thread, Gap)] == [
        "Mon 2 Mar 2026",
        "2 days later · Wed 4 Mar 2026 10:00",
    ]


def test_only_the_newest_messages_are_shown_until_more_are_asked_for(thread):
    talk(thread, WINDOW)

    log = log_of(scene(thread))
    assert len(log.entries) == WINDOW + 1
    assert (log.first, log.earlier_from) == (WINDOW + 1, 1)
    whole = log_of(scene(thread, start=log.earlier_from), before=log.first)
    assert [each.key for each in whole.entries if isinstance(each, Said)][-1] == f"m{WINDOW}-0"
    assert not whole.has_earlier


def test_covered_and_buffered_messages_are_told_apart(thread, record):
    talk(thread, 3)
    MemoryRecord.objects.filter(pk=record.pk).update(revision=1)
    write(record, 1, 2, since=1)
    write(record, 3, 4)

    assert [each.memory for each in entries(thread, Said)] == [
        *("covered", "covered"),
        *("buffered", "buffered"),
        *("", ""),
    ]


def test_what_a_later_revision_shows_is_not_shown_yet(thread, record):
    talk(thread, 2)
    MemoryRecord.objects.filter(pk=record.pk).update(revision=1)
    write(record, 1, 2, since=1)
    write(record, 3, 4, since=2)

    now = scene(thread)

    assert now.coverage.covered == 2
    assert now.coverage.buffered == 4
    assert [line.text for line in now.lines] == ["Line 0 of 1–2", "Line 1 of 1–2"]
    assert panel.chunks_of(now)[0].first == 3


def test_a_marker_stands_behind_the_last_message_of_its_range(thread, record):
    talk(thread, 3)
    cycle = ran(record, first_position=1, last_position=4)
    write(record, 1, 4, cycle=cycle)

    keys = [each.key for each in log_of(scene(thread)).entries]

    assert keys.index(f"cycle-{cycle.pk}") == keys.index("m4-0") + 1


@pytest.mark.parametrize(
    ("kind", "fields", "state", "text"),
    [
        (Cycle.Kind.BUFFER, {"status": "running"}, "buffering", "Buffering 100 tokens"),
        (Cycle.Kind.OBSERVE, {"status": "running"}, "observing", "Observing 100 tokens"),
        (Cycle.Kind.REFLECT, {"status": "running"}, "reflecting", "Reflecting 100 tokens"),
        (Cycle.Kind.BUFFER, {}, "buffered", "Buffered 100 → 20 · 5×"),
        (Cycle.Kind.OBSERVE, {}, "observed", "✓ Observed 100 → 20 · 5×"),
        (Cycle.Kind.BUFFER, {"status": "failed"}, "failed", "✕ Buffering failed"),
        (Cycle.Kind.OBSERVE, {"status": "discarded"}, "interrupted", "⚠ Observation given up"),
        (Cycle.Kind.BUFFER, {"status": "cancelled"}, "interrupted", "⚠ Buffering cancelled"),
        (
            Cycle.Kind.REFLECT,
            {"status": "failed", "interrupted": True},
            "interrupted",
            "⚠ Reflection interrupted",
        ),
    ],
)
def test_every_state_of_a_cycle_has_its_words(thread, record, kind, fields, state, text):
    talk(thread, 1)
    cycle = ran(record, kind, first_position=1, last_position=2, **fields)
    if cycle.status == Cycle.Status.DONE:
        write(record, 1, 2, cycle=cycle)

    (marker,) = markers_of(scene(thread))

    assert (marker.state, marker.words) == (state, text)
    assert marker.running == (cycle.status == Cycle.Status.RUNNING)


def test_a_failed_cycle_says_why(thread, record):
    talk(thread, 1)
    ran(record, status=Cycle.Status.FAILED, last_position=2, error="The model was overloaded.")

    (marker,) = entries(thread, Marker)
    html = live.render(thread.pk, ["entries", "operations"], now=timezone.now())

    assert marker.reason == "The model was overloaded."
    assert all("The model was overloaded." in each.html for each in html.values())


def test_a_cycle_that_found_nothing_says_so(thread, record):
    talk(thread, 1)
    write(record, 1, 2, cycle=ran(record, last_position=2), lines=0)

    assert markers_of(scene(thread))[0].words == "Buffered 100 · nothing to keep"


def test_running_operations_come_before_ended_ones(thread, record):
    running = ran(record, Cycle.Kind.OBSERVE, status=Cycle.Status.RUNNING)
    for _ in range(8):
        ran(record)

    work = panel.work_of(scene(thread))

    assert [each.key for each in work.running] == [str(running.pk)]
    assert len(work.recent) == 3


def test_an_activation_says_what_left_the_context(thread, record):
    talk(thread, 2)
    MemoryRecord.objects.filter(pk=record.pk).update(revision=1)
    write(record, 1, 2, since=1)
    Revision.objects.create(
        record=record,
        number=1,
        cause=Revision.Cause.ACTIVATE,
        trigger="threshold",
        message_tokens_before=24_600,
        message_tokens_after=1900,
        tokens_before=0,
        tokens_after=20,
    )

    (marker,) = entries(thread, Marker)

    assert marker.words == "✓ Activated 1 chunk · 24.6k → 1.9k · threshold"
    assert [line.text for line in marker.lines] == ["Line 0 of 1–2", "Line 1 of 1–2"]


def test_a_turn_that_went_wrong_is_shown_where_it_ended(thread):
    talk(thread, 2)
    Turn.objects.create(
        thread=thread, number=1, status="failed", prompt="x", error="No key.", last_position=2
    )

    keys = [each.key for each in log_of(scene(thread)).entries]

    assert keys.index("turn-1") == keys.index("m2-0") + 1
    assert entries(thread, Ended)[0].words == "✕ The answer failed: No key."


def test_the_gauge_counts_what_is_not_yet_in_memory(thread, record):
    talk(thread, 3)
    MemoryRecord.objects.filter(pk=record.pk).update(revision=1)
    write(record, 1, 2, since=1)
    Revision.objects.create(
        record=record, number=1, cause="activate", tokens_before=0, tokens_after=20
    )

    now = scene(thread)
    messages, observations = gauges.panel_of(now).gauges

    assert messages.value == sum(each.tokens for each in now.messages if each.position > 2)
    assert messages.limit == words.percent(600, 720)
    assert (observations.value, observations.top) == (20, 240)
    assert "generation 0" in observations.caption


def test_the_gauge_says_what_an_observer_that_is_due_waits_for(thread, record):
    talk(thread, 20)
    waits = "Buffering is due and waits for a worker"
    assert waits in gauges.panel_of(scene(thread)).gauges[0].caption

    ran(record, status=Cycle.Status.RUNNING)
    assert waits not in gauges.panel_of(scene(thread)).gauges[0].caption


def test_a_thread_without_memory_says_so(thread):
    thread.remembers = False
    thread.save()

    assert "never remembered" in gauges.panel_of(scene(thread)).off


def test_wrong_options_are_named_instead_of_a_broken_page(thread, profile):
    profile.memory_options = {"message_tokens": -1}
    profile.save()

    shown = gauges.panel_of(scene(thread))

    assert "message_tokens" in shown.wrong
    assert len(shown.gauges) == 2


def test_lines_are_grouped_by_the_day_they_speak_of(thread, record):
    MemoryRecord.objects.filter(pk=record.pk).update(revision=1)
    write(record, 1, 2, since=1)
    Line.objects.filter(ordinal=1).update(said_at=None, kind=Line.Kind.PLAIN)

    (day,) = panel.seen_of(scene(thread)).days

    assert day.name == "2 Mar 2026"
    assert [(line.letter, line.time, line.messages) for line in day.lines] == [
        ("H", "10:00", 2),
        ("·", "", 2),
    ]


def test_a_text_that_became_a_message_is_not_shown_as_draft_too(thread):
    append(thread.pk, [user_prompt("Hi", AT)], at=AT)
    turn = Turn.objects.create(
        thread=thread,
        number=1,
        status="running",
        prompt="Hi",
        draft_text="Hello there",
        first_position=1,
        lease_token=thread.pk,
        lease_expires_at=timezone.now(),
    )
    assert live.draft_of(scene(thread)) == {"draft": "Hello there"}

    append(thread.pk, [ModelResponse(parts=[TextPart("Hello there, Ada")])], at=AT)

    assert live.draft_of(scene(thread)) == {"draft": ""}
    heard = live.Delta(turn.number, 2, "And another")
    assert live.draft_of(scene(thread), heard) == {"draft": "And another"}


@pytest.mark.parametrize("name", live.NAMES)
def test_a_region_costs_the_same_whatever_the_thread_holds(thread, record, name):
    talk(thread, WINDOW)
    MemoryRecord.objects.filter(pk=record.pk).update(revision=2)
    write(record, 1, 2, since=1, cycle=ran(record, last_position=2))
    write(record, 3, 4, cycle=ran(record, last_position=WINDOW * 2))
    _turns(thread, 1, 3)
    few = _statements(thread, name)
    talk(thread, 30)
    for first in range(5, 165, 8):
        since = 2 if first < 85 else None
        write(record, first, first + 7, since=since, cycle=ran(record, last_position=first + 7))
    _turns(thread, 4, 12)

    assert _statements(thread, name) == few <= 11


def _turns(thread, first, last):
    Turn.objects.bulk_create(
        Turn(thread=thread, number=number, prompt="Hi") for number in range(first, last + 1)
    )


def _statements(thread, name):
    with CaptureQueriesContext(connection) as captured:
        live.render(thread.pk, [name], now=timezone.now())
    return len(captured)


@pytest.mark.parametrize("count", [1, 30])
def test_the_watch_asks_once_for_all_open_threads(
    resource, profile, django_assert_num_queries, count
):
    threads = [start(resource, profile) for _ in range(count)]

    with django_assert_num_queries(1):
        assert len(stamps([thread.pk for thread in threads])) == count


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (1200, "1.2k"),
        (30_000, "30k"),
        (128_400, "128k"),
        (1_200_000, "1.2M"),
    ],
)
def test_token_counts_are_short(count, text):
    assert words.tokens(count) == text


def test_a_conversation_keeps_its_memory_when_its_agent_stops_giving_it_to_new_ones(
    thread, profile
):
    profile.remembers = False
    profile.save()

    assert gauges.panel_of(scene(thread)).gauges


def test_memory_that_is_turned_off_is_told_from_one_that_never_was(thread):
    Thread.objects.update(remembers=False)
    assert "never remembered" in gauges.panel_of(scene(thread)).off

    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    assert "never remembered" in gauges.panel_of(scene(thread)).off

    talk(thread, 1)
    write(record, 1, 2)
    assert "turned off for this conversation" in gauges.panel_of(scene(thread)).off
