from datetime import timedelta

import pytest
from django.utils import timezone

from agents import live
from agents.log import Said, log_of
from agents.markers import Marker
from agents.models import RequestSnapshot, Turn
from agents.omitted import Omitted
from agents.page import WINDOW
from agents.people import Forked
from agents.services.erase import erase_messages
from agents.services.fork import fork
from memory.models import Line, MemoryRecord, Revision
from memory.services.clear import clear
from memory.services.configure import configure
from memory.services.edit import edit
from memory.services.forget import forget, unforget
from memory.services.note import note
from memory.services.pin import pin, unpin
from memory.services.restore import restore
from tests.agents.test_page import AT, entries, ran, scene, talk, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def record(thread):
    """Return a record at revision 1 that shows two lines of the first two messages."""
    talk(thread, 2)
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    write(record, 1, 2, since=1)
    return record


@pytest.fixture
def line(record):
    return Line.objects.get(ordinal=0)


def html(thread):
    return live.render(thread.pk, ["entries"], now=timezone.now())["entries"].html


def last_marker(thread):
    return entries(thread, Marker)[-1]


def test_an_edit_is_shown_with_who_made_it_why_and_what_it_says(thread, line, ada):
    edit(line.pk, "Ada keeps three hives", author=ada, reason="She sold one.")

    marker = last_marker(thread)

    assert (marker.words, marker.quote) == ("✎ Line edited by ada", "She sold one.")
    assert [each.text for each in marker.lines] == ["Ada keeps three hives"]
    assert "She sold one." in html(thread)


def test_every_change_by_a_person_has_its_words(thread, record, line):
    line = edit(line.pk, "Other")
    note(record.pk, "By hand")
    (line,) = pin(line.pk)
    (line,) = unpin(line.pk)
    forget(line.pk)
    unforget(line.pk)
    restore(record.pk, 1)
    configure(thread.pk, {"observation_tokens": 250})
    clear(record.pk)
    erase_messages(thread.pk, 3, 4)

    assert [each.words for each in entries(thread, Marker)] == [
        "✎ Line edited",
        "✎ Note written",
        "⚲ Pinned",
        "⚲ Unpinned",
        "− Lines forgotten",
        "↺ Lines restored",
        "↺ Back to revision 1",
        "⚙ Options changed",
        "− Memory cleared",
        "⊘ Erased",
    ]


def test_a_marker_of_a_cycle_shows_what_it_wrote_not_what_became_of_it(thread, record):
    cycle = ran(record, last_position=4)
    write(record, 3, 4, since=1, cycle=cycle)
    edit(Line.objects.get(text="Line 0 of 3–4").pk, "Changed by hand")

    written = next(each for each in entries(thread, Marker) if each.key == f"cycle-{cycle.pk}")

    assert [each.text for each in written.lines] == ["Line 0 of 3–4", "Line 1 of 3–4"]


def test_changes_stand_where_the_conversation_was_then(thread, record):
    later = timezone.now() + timedelta(days=1)
    note(record.pk, "By hand")
    talk(thread, 1, at=later)

    keys = [each.key for each in log_of(scene(thread)).entries]

    assert keys.index("revision-2") == keys.index("m4-0") + 1


def test_changes_older_than_the_log_do_not_pile_up_at_its_beginning(thread, record):
    note(record.pk, "By hand")
    talk(thread, WINDOW, at=timezone.now() + timedelta(days=1))

    assert entries(thread, Marker) == []
    log = log_of(scene(thread, start=1), before=5)
    assert [each.key for each in log.entries if isinstance(each, Marker)] == ["revision-2"]


def test_changes_before_the_first_message_come_first(thread):
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    note(record.pk, "By hand")
    talk(thread, 1, at=timezone.now() + timedelta(days=1))

    assert log_of(scene(thread)).entries[0].key == "revision-1"


def test_a_fork_and_its_parent_lead_to_each_other(thread, record, ada):
    thread.title = "Bees"
    thread.save()
    child = fork(thread.pk, 2, title="Wasps", author=ada, reason="What if?")

    (begun,) = entries(child, Forked)
    (left,) = entries(thread, Forked)

    assert (begun.words, begun.title, begun.after) == ("← Forked from", "Bees", " by ada")
    assert (begun.position, begun.quote) == (2, "What if?")
    assert (left.words, left.title) == ("→ Forked to", "Wasps")
    assert f'href="/chat/{thread.pk}/"' in html(child)
    assert f'href="/chat/{child.pk}/"' in html(thread)


def test_a_fork_whose_parent_is_gone_says_so(thread, record):
    child = fork(thread.pk, 2)
    child.parent = None
    child.save()

    assert entries(child, Forked)[0].words == "← Forked from a conversation that is gone"


def test_erased_messages_are_shown_as_such(thread, record):
    erase_messages(thread.pk, 1, 1)

    said = entries(thread, Said)

    assert [each.erased for each in said] == [True, False, False, False]
    assert "(erased)" not in html(thread)
    assert html(thread).count("</span> Erased</div>") == 1


def test_a_model_that_was_passed_over_is_told_at_the_cycle(thread, record):
    ran(record, last_position=2, note="small:model takes at most 500 tokens; big:model was used.")

    assert "takes at most 500 tokens" in last_marker(thread).note
    assert "takes at most 500 tokens" in html(thread)


@pytest.mark.parametrize(
    ("trigger", "brief", "told"),
    [
        ("manual", "asked for", "asked for by a person"),
        ("idle", "after a rest", "the conversation rested"),
        ("provider_change", "another model", "another model answers now"),
    ],
)
def test_why_something_was_done_is_said_in_words(thread, record, trigger, brief, told):
    Revision.objects.create(
        record=record, number=1, cause="activate", trigger=trigger, tokens_before=0, tokens_after=9
    )

    marker = last_marker(thread)

    assert marker.words.endswith(f" · {brief}")
    assert told in [fact.value for fact in marker.facts]


def sent(thread, *blocks, status="done", step=1):
    turn, _ = Turn.objects.get_or_create(
        thread=thread,
        number=1,
        defaults={
            "status": status,
            "prompt": "Hi",
            "first_position": 3,
            "lease_token": thread.pk,
            "lease_expires_at": AT,
        },
    )
    RequestSnapshot.objects.create(turn=turn, step=step, revision=0, blocks=blocks, total=1)


def left_out(first, last):
    return {
        "kind": "left_out",
        "source": "conversation",
        "tokens": 50,
        "first": first,
        "last": last,
    }


def test_what_a_request_had_no_room_for_is_told_at_its_prompt(thread, record):
    sent(thread, left_out(1, 2), {"kind": "prompt", "source": "conversation", "tokens": 9})

    (note,) = entries(thread, Omitted)
    keys = [each.key for each in log_of(scene(thread)).entries]

    assert note.words.startswith("Left out of this request: messages 1–2, 50 tokens.")
    assert keys.index("omitted-1") == keys.index("m3-0") + 1


def test_a_request_that_held_everything_and_one_under_way_say_nothing(thread, record):
    sent(thread, {"kind": "message", "source": "conversation", "tokens": 9})
    assert entries(thread, Omitted) == []

    Turn.objects.update(status="running")
    sent(thread, left_out(1, 2), step=2)
    assert entries(thread, Omitted) == []


def test_a_request_without_memory_says_why(thread, record):
    source = "conversation, without memory: The database is locked."
    sent(thread, {"kind": "message", "source": source, "tokens": 9})

    assert entries(thread, Omitted)[0].words == (
        "This request was sent without memory: The database is locked."
    )
