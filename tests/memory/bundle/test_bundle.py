import json
from contextlib import suppress

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import BinaryContent

from memory import media
from memory.bundle import BadBundle, load, read, write
from memory.messages import user_prompt
from memory.models import Blob, Line, Media, MemoryRecord, Message, Resource, Revision, Thread
from memory.services.append import append
from memory.services.clear import clear
from memory.services.edit import edit
from memory.services.erase import erase_line, erase_resource
from memory.services.forget import forget
from memory.services.fork import fork
from memory.services.note import note
from memory.services.pin import pin
from memory.services.restore import restore
from memory.services.scope import change_scope
from memory.tokens import count
from tests.browser.world import picture
from tests.memory.services.editing import beekeeping, condense, line, past, texts, user, wrong

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(resource, ada):
    """Return a memory that was changed in every way, with a fork and a picture."""
    world = beekeeping(resource)
    condense(world, "r", [world.a], "Ada keeps bees and time")
    edit(note(world.record.pk, "Wax is dear").pk, "Wax is very dear", author=ada, reason="It rose")
    pin(note(world.record.pk, "Bees sleep", author=ada).pk)
    forget(note(world.record.pk, "Honey is sold out").pk)
    restore(world.record.pk, 4)
    fork(world.thread.pk, 6, title="What if")
    return world


def lines_of(resource):
    return list(write(Resource.objects.get(key=resource.key)))


def back(resource):
    """Export a resource, erase it, and bring it in again; return both files."""
    before = lines_of(resource)
    erase_resource(resource.pk)
    report = load(read(before))
    assert (report.stored, report.problems, report.conflicts) == (True, [], [])
    return before, lines_of(resource)


def test_what_comes_in_is_what_went_out(world, resource):
    history = past(world.record)

    before, after = back(resource)

    assert after == before
    assert past(world.record) == history
    assert wrong() == []


def test_a_file_that_counts_lines_by_their_text_alone_is_counted_anew(world, resource):
    before = lines_of(resource)
    rows = [json.loads(line) for line in before]
    for row in rows:
        if row.get("table") == "line":
            row["tokens"] = count(row["text"])
    old = [json.dumps(row) for row in rows]
    erase_resource(resource.pk)

    assert load(read(old)).problems
    assert load(read([old[0].replace(": 2,", ": 1,"), *old[1:]])).problems == []
    assert lines_of(resource) == before


def test_a_memory_that_conversations_share_comes_in_as_it_was(world, resource):
    change_scope(resource.pk, "resource")

    before, after = back(resource)

    assert after == before
    assert wrong() == []


def test_pictures_come_along_and_are_there_again(world, resource):
    content = BinaryContent(picture(), media_type="image/png", identifier="oak.png")
    now = timezone.now()
    append(world.thread.pk, [user_prompt("Which?", now, attachments=[content])], at=now)
    kept = Media.objects.get()

    before, after = back(resource)

    assert after == before
    assert media.read(kept.hash) == picture()


def test_who_wrote_what_is_known_by_name(world, resource):
    back(resource)

    assert Revision.objects.get(reason="It rose").author.get_username() == "ada"


def test_somebody_who_is_not_here_leaves_no_author_and_a_note(world, resource):
    lines = lines_of(resource)
    erase_resource(resource.pk)
    get_user_model().objects.all().delete()

    report = load(read(lines))

    assert report.stored
    assert report.notes == [
        "There is no user ada here: what is by them has no author, and they no access."
    ]
    assert Revision.objects.get(reason="It rose").author is None


def test_a_second_time_everything_is_skipped(world, resource):
    lines = lines_of(resource)

    report = load(read(lines))

    assert report.stored
    assert (report.total("create"), report.total("update")) == (0, 0)
    assert report.total("skip") == len(lines) - 2
    assert lines_of(resource) == lines


def test_a_dry_run_tells_what_would_be_and_stores_nothing(world, resource):
    lines = lines_of(resource)
    erase_resource(resource.pk)
    Media.objects.all().delete()

    report = load(read(lines), dry_run=True)

    assert not report.stored
    assert report.sound
    assert report.total("create") == len(lines) - 2
    assert report.counts["message"]["create"] == sum('"table":"message"' in each for each in lines)
    assert not Resource.objects.filter(key=resource.key).exists()
    assert not Message.objects.exists()


def test_descriptions_are_brought_up_to_date(world, resource, ben):
    lines = lines_of(resource)
    Resource.objects.update(name="Other")
    Thread.objects.filter(pk=world.thread.pk).update(title="Other")
    resource.members.clear()

    report = load(read(lines))

    assert report.stored
    assert report.counts["resource"]["update"] == report.counts["thread"]["update"] == 1
    assert lines_of(resource) == lines


def test_a_conversation_that_went_on_is_a_conflict_and_nothing_changes(world, resource):
    lines = lines_of(resource)
    world.say(user("One more."))
    Resource.objects.update(name="Other")
    later = lines_of(resource)

    report = load(read(lines))

    assert not report.stored
    assert [(each.table, each.differs) for each in report.conflicts] == [
        ("thread", ("last_position",))
    ]
    assert lines_of(resource) == later


def test_a_memory_that_went_on_is_a_conflict(world, resource):
    lines = lines_of(resource)
    note(world.record.pk, "Later")
    later = lines_of(resource)

    report = load(read(lines))

    assert not report.stored
    assert ("record", ("revision", "epoch")) in {(c.table, c.differs) for c in report.conflicts}
    assert lines_of(resource) == later


def test_what_belongs_to_another_resource_is_left_alone(world, resource):
    theirs = [line.replace('"resource":"ada"', '"resource":"eve"') for line in lines_of(resource)]
    theirs = [line.replace('"key":"ada"', '"key":"eve"') for line in theirs]
    before = lines_of(resource)

    report = load(read(theirs))

    assert not report.stored
    assert report.counts["thread"]["conflict"] == 2
    assert not Resource.objects.filter(key="eve").exists()
    assert lines_of(resource) == before


def test_an_erased_line_does_not_come_back_unseen(world, resource):
    """What was erased here since makes the old file a conflict: erasing is for good."""
    lines = lines_of(resource)
    erase_line(line(world.record, "Ada asks about honey").pk)

    report = load(read(lines))

    assert not report.stored
    gone = Line.objects.filter(text="Ada asks about honey", observation__record=world.record)
    assert not gone.exists()


def test_a_memory_that_breaks_what_must_hold_is_refused_with_the_reason(world, resource):
    lines = [line for line in lines_of(resource) if '"position":2,' not in line]
    lines[-1] = json.dumps({"end": True, "rows": len(lines) - 2})
    erase_resource(resource.pk)

    report = load(read(lines))

    assert not report.stored
    assert report.problems
    assert not Thread.objects.exists()


def test_two_memories_of_one_conversation_are_refused(world, resource):
    lines = lines_of(resource)
    erase_resource(resource.pk)
    rows = ("resource", "thread", "message")
    bare = [line for line in lines[1:-1] if json.loads(line)["table"] in rows]
    load(read([lines[0], *bare, json.dumps({"end": True, "rows": len(bare)})]))
    thread = Thread.objects.get(pk=world.thread.pk)
    MemoryRecord.objects.create(resource=thread.resource, thread=thread)

    report = load(read(lines))

    assert not report.stored
    assert "cannot stand side by side" in report.problems[0]
    assert MemoryRecord.objects.count() == 1


def tampered(lines, of, changes):
    """Return the lines with other values in the first row of a table."""
    changed = list(lines)
    place = next(i for i, line in enumerate(lines) if f'"table":"{of}"' in line)
    changed[place] = json.dumps({**json.loads(lines[place]), **changes})
    return changed


@pytest.mark.parametrize(
    ("table", "changes", "sentence"),
    [
        ("line", {"colour": "red"}, "colour is not known here"),
        ("line", {"tokens": "many"}, "tokens cannot be 'many'"),
        ("line", {"tokens": -1}, "tokens cannot be '-1'"),
        ("line", {"kind": "rumour"}, "kind cannot be 'rumour'"),
        ("line", {"id": "1"}, "id cannot be '1'"),
        ("line", {"text": None}, "text is null"),
        ("line", {"table": "auth_user"}, "there is no table 'auth_user'"),
        ("message", {"payload": {"parts": [{}]}}, "the payload of message 1 is no message"),
        ("message", {"created_at": "soon"}, "created_at cannot be 'soon'"),
        ("resource", {"key": "eve"}, "of the resource ada alone"),
        ("resource", {"members": "ada"}, "members is a list of names"),
        ("resource", {"time_zone": "Berlin"}, "there is no time zone .Berlin."),
        ("revision", {"author": 1}, "a person is named by a text"),
    ],
)
def test_a_line_that_cannot_be_is_named(world, resource, table, changes, sentence):
    with pytest.raises(BadBundle, match=rf"^Line \d+: .*{sentence}"):
        read(tampered(lines_of(resource), table, changes))


def test_a_text_or_file_that_is_not_what_its_hash_says_is_refused(world, resource):
    kept = {"table": "text", "hash": "0" * 64, "text": "Other"}
    file = {"table": "media", "hash": "0" * 64, "media_type": "image/png", "name": "x", "size": 1}
    lines = lines_of(resource)
    for row, sentence in ((kept, "the text is not"), (file, "the file is not")):
        with pytest.raises(BadBundle, match=sentence):
            read([*lines[:-1], json.dumps(row), lines[-1]])


def test_no_message_lays_hold_of_a_file_that_is_here(world, resource):
    content = BinaryContent(picture(), media_type="image/png", identifier="plan.png")
    now = timezone.now()
    append(world.thread.pk, [user_prompt("Which?", now, attachments=[content])], at=now)
    lines = [line for line in lines_of(resource) if '"table":"media"' not in line]
    lines[-1] = json.dumps({"end": True, "rows": len(lines) - 2})

    with pytest.raises(BadBundle, match=r"A row of message \(request 11\) refers to a file"):
        read(lines)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lines: lines[:-1], "breaks off"),
        (lambda lines: [*lines[:5], *lines[6:]], "should hold"),
        (lambda lines: lines[1:], "is no bundle"),
        (lambda lines: [], "is no bundle"),
        (lambda lines: [*lines, lines[1]], "comes after the end"),
        (lambda lines: [lines[0], "{", *lines[1:]], "Line 2 is not JSON"),
        (lambda lines: [lines[0], "[]", *lines[1:]], "Line 2 is not a JSON object"),
        (lambda lines: [lines[0].replace(":2,", ":9,"), *lines[1:]], "has version 9"),
    ],
)
def test_a_file_that_is_damaged_is_refused(world, resource, change, sentence):
    with pytest.raises(BadBundle, match=sentence):
        read(change(lines_of(resource)))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drop=st.sets(st.integers(1, 60), min_size=1, max_size=4))
def test_a_file_without_some_of_its_rows_leaves_memory_sound_or_away(world, resource, drop):
    """Whatever is missing, nothing is stored that breaks an invariant."""
    with transaction.atomic():
        lines = lines_of(resource)
        left = [line for at, line in enumerate(lines[:-1]) if at not in drop]
        left.append(json.dumps({"end": True, "rows": len(left) - 1}))
        erase_resource(resource.pk)
        with suppress(BadBundle):
            load(read(left))
        assert wrong() == []
        transaction.set_rollback(True)


def test_texts_that_are_here_already_are_kept_once(world, resource):
    Blob.objects.keep(["asked"])
    clear(world.record.pk)
    lines = lines_of(resource)

    assert load(read(lines)).stored
    assert Blob.objects.count() == 1
    assert texts(world.record) == []
