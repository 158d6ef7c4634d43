import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Line, Revision
from memory.publish import record_group
from memory.services.activate import activate_reflection
from memory.services.change import LONGEST_TEXT, Refused, Stale, compare
from memory.services.edit import edit
from memory.services.forget import forget, show_again, unforget
from memory.services.history import lines_at
from memory.services.look import look
from memory.services.note import note
from memory.services.pin import pin, unpin
from memory.tokens import count_line

from .editing import beekeeping, condense, line, past, texts, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def latest(world):
    return Revision.objects.filter(record=world.record).latest("number")


def test_an_edited_line_stands_where_the_old_one_stood_and_the_past_keeps_the_old(world, ada):
    before = past(world.record)

    new = edit(world.a0.pk, " Ada asked for noon ", author=ada, reason="It was noon")

    assert texts(world.record) == ["Ada asked for noon", "Ada keeps bees", "Ada asks about honey"]
    assert (new.replaces_id, new.ordinal, new.tokens) == (
        world.a0.pk,
        0,
        count_line(new.kind, new.text, new.said_at),
    )
    assert (new.first_position, new.last_position, new.said_at) == (1, 2, world.a0.said_at)
    made = latest(world)
    assert (made.cause, made.author, made.reason) == ("edit", ada, "It was noon")
    assert made.tokens_after - made.tokens_before == new.tokens - world.a0.tokens
    world.record.refresh_from_db()
    assert (world.record.revision, world.record.epoch) == (3, 1)
    assert before.items() <= past(world.record).items()
    assert wrong() == []


def test_a_line_may_get_another_kind_with_the_same_text(world):
    assert edit(world.a0.pk, world.a0.text, kind="high").kind == "high"
    assert wrong() == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("  ", "The line is empty"),
        ("x" * (LONGEST_TEXT + 1), "at most 10,000 fit"),
        ("Ada asked for the time", "says this already"),
    ],
)
def test_an_edit_that_says_nothing_new_is_refused_and_writes_nothing(world, text, sentence):
    with pytest.raises(Refused, match=sentence):
        edit(world.a0.pk, text)

    world.record.refresh_from_db()
    assert (world.record.revision, world.record.epoch) == (2, 0)


def test_an_unknown_kind_is_refused_with_those_there_are(world):
    with pytest.raises(Refused, match="use high, medium, low, done, plain"):
        edit(world.a0.pk, "Something else", kind="urgent")


def test_a_stale_edit_carries_both_texts(world):
    edit(world.a0.pk, "Ada asked for noon")
    theirs = edit(line(world.record, "Ada asked for noon").pk, "Ada asked for midnight")

    with pytest.raises(Stale) as error:
        edit(world.a0.pk, "Ada asked for dawn")

    assert (error.value.yours, error.value.theirs) == (
        "Ada asked for dawn",
        "Ada asked for midnight",
    )
    assert error.value.current == theirs


def test_who_read_the_line_before_the_winner_wrote_is_told_what_that_says(world):
    seen = Line.objects.get(pk=world.a0.pk)
    theirs = edit(world.a0.pk, "Ada asked for noon")

    with pytest.raises(Stale) as error:
        compare(seen, yours="Ada asked for dawn")

    assert (error.value.theirs, error.value.current) == ("Ada asked for noon", theirs)


def test_an_edit_of_a_forgotten_line_is_stale_and_nobodys_text_is_lost(world):
    forget(world.a0.pk)

    with pytest.raises(Stale, match="not visible any more") as error:
        edit(world.a0.pk, "Ada asked for dawn")

    assert (error.value.yours, error.value.theirs) == ("Ada asked for dawn", None)


def test_a_line_that_began_after_the_revision_the_caller_saw_is_stale(world):
    new = edit(world.a0.pk, "Ada asked for noon")

    with pytest.raises(Stale):
        edit(new.pk, "Ada asked for dawn", expected=2)
    assert edit(new.pk, "Ada asked for dawn", expected=3).text == "Ada asked for dawn"


def test_another_line_may_change_meanwhile(world):
    edit(world.a1.pk, "Ada keeps many bees")

    assert edit(world.a0.pk, "Ada asked for dawn", expected=2).text == "Ada asked for dawn"


def test_a_buffered_line_cannot_be_edited_yet_and_stays_buffered_through_edits(world):
    with pytest.raises(Refused, match="not shown yet"):
        edit(world.d0.pk, "Ada asks about wasps")

    edit(world.a0.pk, "Ada asked for noon")
    world.d.refresh_from_db()
    assert (world.d.kind, world.d.discarded_at) == ("observation", None)


def test_a_waiting_reflection_is_given_up_after_an_edit(world):
    row = world.reflect("w", [world.a], "Ada asked")
    edit(world.a0.pk, "Ada asked for noon")
    view = look(world.thread.pk)

    with CaptureQueriesContext(connection) as said:
        assert activate_reflection(view) is None
    row.refresh_from_db()
    assert row.discarded_at is not None
    # Whoever changes a record takes it before its rows: the other way round they would block
    # each other for good.
    written = [each["sql"].split('"')[1] for each in said if each["sql"].startswith("UPDATE")]
    assert written == ["memory_memoryrecord", "memory_observation"]


def test_a_note_stands_last_and_covers_nothing(world, ada):
    noted = note(world.record.pk, "Ada is allergic to stings", author=ada)

    assert texts(world.record)[-1] == "Ada is allergic to stings"
    assert noted.observation.first_position is None
    assert (latest(world).cause, latest(world).author) == ("note", ada)
    assert wrong() == []


def test_an_empty_note_is_refused(world):
    with pytest.raises(Refused, match="empty"):
        note(world.record.pk, " \n")


def test_a_pinned_line_stays_beside_the_reflection_of_what_it_stood_among(world):
    pin(world.a1.pk, reason="Always")
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    assert texts(world.record) == ["Ada keeps bees", "Ada asked for things"]
    assert wrong() == []


def test_an_unpinned_line_is_condensed_like_any_other(world):
    (pinned,) = pin(world.a1.pk)
    unpin(pinned.pk)
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    assert texts(world.record) == ["Ada asked for things"]
    assert wrong() == []


def test_a_line_is_pinned_once(world):
    (pinned,) = pin(world.a1.pk)

    with pytest.raises(Refused, match="pinned already"):
        pin(pinned.pk)
    with pytest.raises(Stale):
        pin(world.a1.pk)
    with pytest.raises(Refused, match="not pinned"):
        unpin(world.a0.pk)


def test_several_lines_are_changed_in_one_revision_or_not_at_all(world):
    forget(world.a0.pk)

    with pytest.raises(Stale):
        forget([world.a1.pk, world.a0.pk])
    assert texts(world.record) == ["Ada keeps bees", "Ada asks about honey"]

    assert forget([world.a1.pk, world.b0.pk]) == 4
    assert texts(world.record) == []
    assert wrong() == []


def test_lines_of_two_memories_are_refused(world, profile):
    other = beekeeping(type(world.thread.resource).objects.create(key="ben", name="Ben"))

    with pytest.raises(Refused, match="lines of one memory"):
        forget([world.a0.pk, other.a0.pk])


def test_a_forgotten_line_is_in_history_and_can_be_shown_again(world):
    forget(world.a0.pk)
    assert texts(world.record) == ["Ada keeps bees", "Ada asks about honey"]
    assert lines_at(world.record.pk, 2)[0] == world.a0

    shown = unforget(world.a0.pk)

    assert texts(world.record)[0] == "Ada asked for the time"
    assert (shown.replaces_id, shown.since) == (world.a0.pk, 4)
    assert wrong() == []


def test_a_condensed_line_was_not_forgotten_but_can_be_shown_beside_the_reflection(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    with pytest.raises(Refused, match="not forgotten"):
        unforget(world.a1.pk)
    show_again(world.a1.pk)

    assert texts(world.record) == ["Ada keeps bees", "Ada asked for things"]
    with pytest.raises(Stale, match="is visible"):
        show_again(world.a1.pk)
    assert wrong() == []


def test_a_closed_memory_refuses_changes(world):
    world.set(world.record, closed_at=world.thread.created_at)

    with pytest.raises(Refused, match="closed"):
        edit(world.a0.pk, "Ada asked for noon")


def test_a_reason_is_bounded(world):
    with pytest.raises(Refused, match="1,000 are kept"):
        forget(world.a0.pk, reason="x" * 1_001)


@pytest.mark.django_db(transaction=True)
async def test_a_change_is_told_once_it_is_committed(world):
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(record_group(world.record.pk), channel)

    await sync_to_async(forget)(world.a0.pk)

    event = (await layer.receive(channel))["event"]
    assert (event["kind"], event["revision"]) == ("memory.forgotten", 3)
    assert event["thread"] == str(world.thread.pk)
