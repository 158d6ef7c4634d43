from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import gauges, live, panel
from agents.models import Turn
from agents.page import Scene
from agents.services.thread import start
from agents.stamps import stamps
from memory.models import Cycle, Line, MemoryRecord, Observation
from memory.services.append import append
from tests.agents.test_page import ran, scene, talk, write

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def record(thread):
    """Return a record that all conversations of Ada's share."""
    thread.resource.scope = "resource"
    thread.resource.save()
    return MemoryRecord.objects.create(resource=thread.resource, scope="resource", revision=1)


@pytest.fixture
def garden(thread, profile, record):
    """Return another conversation of the same memory, with two messages."""
    garden = start(thread.resource, profile, title="The garden")
    talk(garden, 1)
    return garden


def observed(record, thread, first, last, **fields):
    """Store what was observed of one of the conversations."""
    record.thread = thread
    try:
        return write(record, first, last, **fields)
    finally:
        record.thread = None


def html(thread, *names):
    rendered = live.render(thread.pk, names, now=timezone.now())
    return "".join(each.html for each in rendered.values())


def test_a_shared_memory_says_how_many_share_it(thread, garden):
    assert gauges.panel_of(scene(thread)).shared == "Shared by 2 conversations"
    assert "Shared by" not in html(start_alone(thread), "gauges")


def start_alone(thread):
    """Return a conversation that kept a record of its own."""
    alone = start(thread.resource, Scene(thread.pk, AT).agent)
    MemoryRecord.objects.create(resource=thread.resource, thread=alone)
    return alone


def test_the_gauge_counts_all_conversations_and_names_the_share_of_this_one(thread, garden):
    talk(thread, 2)

    now = scene(thread)
    messages, _ = gauges.panel_of(now).gauges

    mine = sum(message.tokens for message in now.messages)
    theirs = sum(message.tokens for message in scene(garden).messages)
    assert messages.value == mine + theirs
    assert messages.caption.startswith(f"This conversation: {mine} · ")
    assert [bar.look for bar in messages.bars] == ["ahead", "beside", "live"]


def test_what_is_observed_of_another_conversation_does_not_count_any_more(thread, garden, record):
    observed(record, garden, 1, 2, since=1)

    now = scene(thread)

    assert gauges.panel_of(now).gauges[0].value == 0
    assert panel.others_of(now).count == 0
    assert now.coverage.covered == 0
    assert scene(garden).coverage.covered == 2


def test_lines_of_other_conversations_lead_there(thread, garden, record):
    talk(thread, 1)
    observed(record, garden, 1, 2, since=1)
    observed(record, thread, 1, 2, since=1)

    (day,) = panel.seen_of(scene(thread)).days

    assert {line.title for line in day.lines} == {"", "The garden"}
    assert html(thread, "observations").count(f'href="/chat/{garden.pk}/"') == 2


def test_chunks_and_cycles_of_other_conversations_are_named(thread, garden, record):
    record.thread = garden
    cycle = ran(record, last_position=2)
    record.thread = None
    observed(record, garden, 1, 2, cycle=cycle)

    now = scene(thread)

    assert [chunk.title for chunk in panel.chunks_of(now)] == ["The garden"]
    assert [each.title for each in panel.work_of(now).recent] == ["The garden"]
    assert "cycle-" not in html(thread, "entries")
    assert "cycle-" in html(garden, "entries")
    assert gauges.panel_of(now).gauges[0].bars[0].look == "ahead"


def test_a_reflection_of_the_shared_memory_is_in_the_log_of_every_conversation(
    thread, garden, record
):
    talk(thread, 1)
    source = observed(record, garden, 1, 2, since=1)
    record.thread = garden
    cycle = ran(record, Cycle.Kind.REFLECT)
    record.thread = None
    reflection = Observation.objects.create(
        record=record, kind="reflection", since=1, place=1, cycle=cycle
    )
    reflection.sources.add(source)

    assert f"cycle-{cycle.pk}" in html(thread, "entries")
    assert f"cycle-{cycle.pk}" in html(garden, "entries")


def test_what_the_agent_is_told_of_others_is_shown_as_it_is_told(thread, garden):
    shown = panel.others_of(scene(thread))

    assert (shown.count, shown.threads[0].title) == (1, "The garden")
    assert shown.threads[0].words.startswith("2 messages")
    assert "Question 0 about bees" in shown.text
    assert "&lt;other-conversation id=" in html(thread, "others")


def test_a_thread_whose_agent_remembers_by_thread_is_no_part_of_a_shared_memory(
    thread, garden, record
):
    thread.resource.scope = "thread"
    thread.resource.save()
    Line.objects.all().delete()

    now = scene(thread)

    assert (now.record, now.is_shared, now.tails) == (None, False, [])


@pytest.mark.parametrize("name", live.NAMES)
def test_a_region_costs_the_same_however_many_conversations_share(
    thread, garden, record, profile, name
):
    talk(thread, 2)
    observed(record, garden, 1, 2)
    few = _statements(thread, name)
    for number in range(30):
        other = start(thread.resource, profile, title=f"Talk {number}")
        talk(other, 2)
        if number % 2:
            observed(record, other, 1, 2)

    assert _statements(thread, name) == few <= 13


def _statements(thread, name):
    html(thread, name)  # Messages never change: a process reads each once.
    with CaptureQueriesContext(connection) as captured:
        html(thread, name)
    return len(captured)


def stale_after(thread, act):
    """Return the regions of a thread that the watch finds stale after something."""
    (before,) = stamps([thread.pk]).values()
    act()
    (after,) = stamps([thread.pk]).values()
    return live.stale(dict.fromkeys(live.NAMES, before), after)


def test_the_watch_notices_what_others_say_and_what_they_remember(thread, garden, record):
    assert stale_after(thread, lambda: talk(garden, 1)) == {"gauges", "others", "threads"}

    MemoryRecord.objects.filter(pk=record.pk).update(revision=2)
    (now,) = stamps([thread.pk]).values()
    assert 2 in now["revision"]
    record.thread = garden
    stale = stale_after(thread, lambda: ran(record))
    assert {"operations", "chunks", "gauges", "entries"} <= stale


def test_the_watch_leaves_pages_alone_that_share_nothing(thread, garden):
    alone = start_alone(thread)

    assert stale_after(alone, lambda: talk(garden, 1)) == {"threads"}


def test_a_page_moves_to_the_record_that_takes_over(thread, garden, record):
    own = stale_after(
        thread, lambda: MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    )

    assert {"gauges", "observations", "generations", "chunks", "task"} <= own


def test_the_watch_asks_once_however_many_threads_share(
    thread, garden, profile, django_assert_num_queries
):
    threads = [start(thread.resource, profile) for _ in range(20)]
    append(threads[0].pk, [], at=AT)
    Turn.objects.create(thread=threads[0], number=1, prompt="Hi")
    stamps([thread.pk])

    with django_assert_num_queries(1):
        assert len(stamps([each.pk for each in threads])) == 20


def test_pages_that_share_read_what_they_have_in_common_once(thread, garden, record, profile):
    def statements(pages):
        talk(garden, 1)
        found = stamps([page.pk for page in pages])
        wanted = dict.fromkeys((page.pk for page in pages), live.BESIDE)
        with CaptureQueriesContext(connection) as captured:
            live.beside(thread.resource_id, wanted, found, timezone.now())
        return len(captured)

    pages = [thread, *(start(thread.resource, profile) for _ in range(9))]
    statements(pages)  # How long each is has to be read once.
    one, ten = statements(pages[:1]), statements(pages)

    # Only its state, and what its agent is told of the others, is each page's own.
    assert ten == one + 2 * 9
