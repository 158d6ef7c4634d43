import pytest
from django.db.models import CharField, JSONField, TextField

from memory.messages import load
from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Resource,
    Revision,
    Thread,
)
from memory.models.blob import digest
from memory.services.change import Refused
from memory.services.clear import clear
from memory.services.edit import edit
from memory.services.erase import erase_line, erase_messages, erase_resource, erase_thread
from memory.services.forget import forget
from memory.services.fork import fork
from memory.services.look import look
from memory.services.note import note
from memory.services.restore import restore
from memory.services.scope import change_scope
from tests.memory.verify.conftest import World

from .editing import answer, beekeeping, call, condense, line, observe, result, texts, user, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


@pytest.fixture
def other(world):
    """Another conversation of the same resource, with a memory of its own."""
    thread = Thread.objects.create(resource=world.thread.resource, agent="tester")
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread)
    other = World(thread, record)
    other.say(user("And tea?"), answer("Hot."))
    observe(other, "o", 1, 2, "Ada drinks tea")
    return other


def stored(text):
    """Return every row and field that holds a text, whatever the table."""
    found = []
    for model in (Message, Observation, Line, Revision, Cycle, Blob, Thread, Resource):
        for field in model._meta.concrete_fields:
            if isinstance(field, CharField | TextField | JSONField):
                for value in model._base_manager.values_list(field.attname, flat=True):
                    if text in str(value):
                        found.append(f"{model.__name__}.{field.attname}: {value}")
    return found


def test_erased_messages_leave_markers_and_nothing_else(world, ada):
    report = erase_messages(world.thread.pk, 3, 4, author=ada)

    assert stored("bees") == []
    marks = [Message.objects.get(thread=world.thread, position=p) for p in (3, 4)]
    assert [mark.text for mark in marks] == ["(erased)", "(erased)"]
    assert all(load(mark.payload).metadata == {"erased": True} for mark in marks)
    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert (report.counts["messages"], report.counts["lines"]) == (2, 1)
    made = Revision.objects.filter(record=world.record).latest("number")
    assert (made.cause, made.author) == ("erase", ada)
    world.record.refresh_from_db()
    assert world.record.epoch == 1
    assert wrong() == []


def test_the_actor_sees_markers_in_the_tail(world):
    erase_messages(world.thread.pk, 9)

    assert [row.position for row in look(world.thread.pk).raw] == [7, 8, 9, 10]
    assert stored("wax") == []
    assert wrong() == []


def test_calls_and_results_stay_paired(world):
    world.say(user("What time is it?"), call("c1"), result("c1"), answer("Nine."))

    erase_messages(world.thread.pk, 12, 12)
    erase_messages(world.thread.pk, 13, 14)

    assert stored("o'clock") == stored("Nine.") == []
    assert wrong() == []


def test_every_version_of_a_line_goes_and_what_was_said_of_it(world):
    edit(world.a1.pk, "Ada keeps many bees", reason="She has many bees")
    forget(Line.objects.get(text="Ada keeps many bees").pk, reason="Enough of bees")

    erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == []
    assert wrong() == []


def test_a_reflection_made_from_an_erased_line_goes_and_the_rest_comes_back(world):
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")

    report = erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == []
    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert report.counts["reflections"] == 1
    assert wrong() == []


def test_so_does_each_reflection_made_from_that(world):
    condense(world, "r", [world.a], "Ada keeps time and bees")
    condense(world, "q", [world.r, world.b], "Drones and honey")

    erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == stored("Drones") == []
    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_what_a_person_took_out_of_sight_does_not_come_back_with_it(world):
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")
    forget(world.r0.pk)

    erase_messages(world.thread.pk, 3, 4)
    assert texts(world.record) == []
    assert wrong() == []


def test_a_waiting_reflection_and_a_running_cycle_are_given_up(world):
    world.reflect("w", [world.a], "Ada keeps bees and time")
    running = world.cycle("buffer", first=9, last=10, status="running")

    erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == []
    assert Cycle.objects.get(pk=running.pk).status == "discarded"
    assert wrong() == []


def test_what_is_buffered_of_erased_messages_goes_too(world):
    report = erase_messages(world.thread.pk, 7, 7)

    world.d.refresh_from_db()
    assert not world.d.lines.exists()
    assert (world.d.kind, world.d.tokens) == ("observation", 0)
    assert report.counts["lines"] == 1
    assert wrong() == []


def test_what_was_discarded_goes_too(world):
    clear(world.record.pk)

    erase_messages(world.thread.pk, 7, 8)

    assert stored("swarms") == []
    assert wrong() == []


def test_requests_replies_and_hints_that_may_hold_the_text_go(world):
    Blob.objects.keep(["asked of bees", "answered of bees", "asked of nothing"])
    world.set(
        world.a.cycle,
        request_hash=digest("asked of bees"),
        reply_hash=digest("answered of bees"),
        error="It said bees",
    )
    world.set(world.a, current_task="Bees", suggested_response="Bees", thread_title="Bees")
    world.set(world.b, extracted={"animals": ["bees"]})

    report = erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == stored("Bees") == []
    assert Blob.objects.get().text == "asked of nothing"
    assert report.counts["texts"] == 2
    assert wrong() == []


def test_a_text_that_others_asked_with_as_well_stays(world):
    other = beekeeping(Resource.objects.create(key="ben", name="Ben"))
    Blob.objects.keep(["the same"])
    for each in (world, other):
        each.set(each.a.cycle, request_hash=digest("the same"))

    erase_messages(world.thread.pk, 3, 4)

    assert Blob.objects.filter(text="the same").exists()
    other.a.cycle.refresh_from_db()
    assert other.a.cycle.request_hash == digest("the same")


def test_a_text_that_is_about_to_be_asked_with_again_goes(world):
    """A call that failed is asked again, by somebody who read before the erase."""
    other = beekeeping(Resource.objects.create(key="ben", name="Ben"))
    Blob.objects.keep(["the same"])
    world.set(world.a.cycle, request_hash=digest("the same"))
    other.set(
        other.a.cycle,
        request_hash=digest("the same"),
        status=Cycle.Status.RUNNING,
        finished_at=None,
    )

    erase_messages(world.thread.pk, 3, 4)

    assert not Blob.objects.filter(text="the same").exists()


@pytest.mark.parametrize("of_fork", [True, False])
def test_the_same_messages_go_in_forks_up_and_down(world, of_fork):
    child = fork(world.thread.pk, 6)
    grandchild = fork(child.pk, 4)

    report = erase_messages((child if of_fork else world.thread).pk, 3, 4)

    assert stored("bees") == []
    assert {span.thread for span in report.spans} == {world.thread.pk, child.pk, grandchild.pk}
    assert wrong() == []


def left_in_a_fork(world):
    """Return what a fork remembers once the messages about bees are erased in its parent."""
    child = fork(world.thread.pk, 6)
    erase_messages(world.thread.pk, 3, 4)
    return texts(MemoryRecord.objects.get(thread=child))


def test_a_copied_line_that_a_copied_reflection_stands_for_comes_back(world):
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")

    assert left_in_a_fork(world) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_one_comes_back_that_a_condensed_reflection_stood_for(world):
    condense(world, "r", [world.a], "Ada asked for the time and keeps bees")
    condense(world, "again", [world.r, world.b], "Ada asked about bees and honey")

    assert left_in_a_fork(world) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_one_comes_back_though_a_reflection_that_was_taken_back_was_copied_too(world):
    before = world.record.revision
    condense(world, "taken back", [world.a], "Ada asks")
    restore(world.record.pk, before)
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")

    assert left_in_a_fork(world) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_one_comes_back_that_a_restored_reflection_stands_for_again(world):
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")
    restored = world.record.revision
    restore(world.record.pk, 2)
    condense(world, "later", [world.a, world.b], "Ada asked for things")
    restore(world.record.pk, restored)

    erase_messages(world.thread.pk, 3, 4)

    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_forks_can_be_spared(world):
    child = fork(world.thread.pk, 6)

    erase_messages(world.thread.pk, 3, 4, copies=False)

    assert "Ada keeps bees" in texts(MemoryRecord.objects.get(thread=child))
    assert wrong() == []


def test_a_closed_record_is_erased_as_well(world):
    world.set(world.record, closed_at=world.thread.created_at)

    erase_messages(world.thread.pk, 3, 4)

    assert stored("bees") == []
    assert Revision.objects.get(record=world.record, number=3).cause == "erase"
    assert wrong() == []


def test_a_call_that_other_conversations_shared_is_forgotten_there_too(world, other):
    Blob.objects.keep(["bees and tea"])
    made = Cycle.objects.filter(record=world.record).first()
    shared = Cycle.objects.filter(pk=made.pk) | Cycle.objects.filter(record=other.record)
    shared.update(call=made.call, request_hash=digest("bees and tea"))

    erase_messages(world.thread.pk)

    assert stored("bees") == []
    assert wrong() == []


def test_a_conversation_of_several_goes_after_it_was_condensed_and_cleared(world, other):
    condense(other, "r", [other.o], "Ada likes tea")
    (joined,) = change_scope(world.thread.resource_id, "resource")
    clear(joined.pk, thread_id=other.thread.pk)

    erase_thread(other.thread.pk)

    assert stored("tea") == []
    assert "Ada keeps bees" in texts(joined)
    assert wrong() == []


def test_a_reflection_stands_where_the_last_of_its_sources_does_that_is_left(world, other):
    other.say(user("And milk?"), answer("Cold."))
    (joined,) = change_scope(world.thread.resource_id, "resource")
    mine, theirs = World(world.thread, joined), World(other.thread, joined)
    observe(theirs, "nothing", 3, 4)
    shown = Observation.objects.filter(record=joined, since__isnull=False)
    kept = shown.filter(thread=world.thread).latest("first_position")
    condense(mine, "r", [kept, theirs.nothing], "Ada asked for things")

    erase_thread(other.thread.pk)

    assert "Ada asked for things" in texts(joined)
    assert Observation.objects.get(kind="reflection").place == kept.place
    assert wrong() == []


def test_what_is_erased_cannot_be_restored(world):
    forget(world.a1.pk)
    erase_messages(world.thread.pk, 3, 4)
    forget(world.b0.pk)

    restore(world.record.pk, 2)

    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert wrong() == []


def test_there_must_be_something_to_erase(world):
    with pytest.raises(Refused, match="no messages 20 to 30"):
        erase_messages(world.thread.pk, 20, 30)
    with pytest.raises(Refused, match="no such conversation"):
        erase_messages(world.record.pk)
    with pytest.raises(Refused, match="was erased"):
        erase_line(world.record.pk)


def test_an_erased_line_goes_with_the_reflections_made_from_it_and_its_messages_stay(world):
    condense(world, "r", [world.a, world.b], "Ada asked about bees and honey")

    report = erase_line(world.a1.pk)

    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert {found.split(".")[0] for found in stored("bees")} == {"Message"}
    assert (report.counts["lines"], report.counts["reflections"]) == (2, 1)
    assert wrong() == []


def test_of_a_reflections_line_what_it_rests_on_goes_too(world):
    condense(world, "r", [world.a, world.b], "Bees")
    world.set(world.r0, first_position=3, last_position=4)

    erase_line(world.r0.pk)

    assert texts(world.record) == ["Ada asked for the time", "Ada asks about honey"]
    assert {found.split(".")[0] for found in stored("bees")} == {"Message"}
    assert wrong() == []


def test_what_only_a_reflection_between_rests_on_stays(world):
    condense(world, "r", [world.a], "Ada asked for the time and keeps bees")
    world.set(world.r0, first_position=1, last_position=4)
    condense(world, "s", [world.r, world.b], "Bees and honey")
    world.set(world.s0, first_position=3, last_position=6)

    erase_line(world.s0.pk)

    assert texts(world.record) == ["Ada asked for the time"]
    assert wrong() == []


def test_an_erased_line_goes_with_its_copies_in_forks_and_in_memory_of_another_scope(world):
    note(world.record.pk, "Ada hums")
    edit(world.a1.pk, "Ada keeps wasps")
    child = fork(world.thread.pk, 8)
    grandchild = fork(child.pk, 8)
    (joined,) = change_scope(world.thread.resource_id, "resource")
    world.record.refresh_from_db()

    for text in ("Ada keeps wasps", "Ada hums"):
        erase_line(Line.objects.filter(observation__record=joined, text=text).first().pk)

    assert stored("wasps") == [] == stored("hums")
    for each in MemoryRecord.objects.all():
        assert "Ada asks about honey" in texts(each)
    assert {child.pk, grandchild.pk} < set(Thread.objects.values_list("pk", flat=True))
    assert wrong() == []


def test_what_an_erased_reflection_rests_on_goes_where_it_was_never_condensed_too(world):
    (joined,) = change_scope(world.thread.resource_id, "resource")
    shared = World(world.thread, joined)
    condense(shared, "r", list(joined.observations.filter(since__gt=0)), "Ada keeps bees on roofs")
    world.record.refresh_from_db()
    assert "Ada keeps bees" in texts(world.record, 2)

    erase_line(line(joined, "Ada keeps bees on roofs").pk)

    assert {found.split(".")[0] for found in stored("keeps bees")} == set()
    assert wrong() == []


def test_a_line_of_another_call_that_says_the_same_stays(world, other):
    other.say(user("Bees?"), answer("Yes."))
    observe(other, "p", 3, 4, "Ada keeps bees")

    erase_line(world.a1.pk)

    assert "Ada keeps bees" in texts(other.record)


def test_an_erased_note_leaves_nothing(world):
    noted = note(world.record.pk, "Ada is careful", reason="She is careful")

    erase_line(noted.pk)

    assert stored("careful") == []
    assert wrong() == []


def test_memory_goes_on_after_an_erase_and_is_counted_again(world):
    erase_messages(world.thread.pk, 3, 4)
    forget(world.a0.pk)
    world.record.refresh_from_db()
    world.set(world.d, since=None)

    assert texts(world.record) == ["Ada asks about honey"]
    Revision.objects.filter(record=world.record, number=4).update(tokens_after=1)
    assert [found.split(":")[0] for found in wrong()] == ["revisions.tokens"]


def test_an_erased_thread_is_gone_with_all_that_was_made_of_it(world):
    note(world.record.pk, "Ada is careful")
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    Blob.objects.keep(["asked of bees"])
    world.set(world.a.cycle, request_hash=digest("asked of bees"))

    report = erase_thread(world.thread.pk)

    for model in (Thread, MemoryRecord, Observation, Line, Cycle, Cursor, Revision, Blob, Message):
        assert not model.objects.exists()
    assert report.counts["threads"] == report.counts["records"] == 1
    assert report.counts["messages"] == 10


def test_an_erased_thread_leaves_a_shared_memory_to_the_others(world):
    MemoryRecord.objects.filter(pk=world.record.pk).update(scope="resource", thread=None)
    world.record.refresh_from_db()
    from tests.memory.verify.conftest import World

    other = World(Thread.objects.create(resource=world.thread.resource, agent="t"), world.record)
    other.say(user("And tea?"), answer("Hot."))
    observe(other, "o", 1, 2, "Ben drinks tea")
    condense(world, "r", [world.a, other.o], "Both like bees and tea")

    erase_thread(world.thread.pk)

    assert texts(world.record) == ["Ben drinks tea"]
    assert stored("bees") == []
    assert wrong() == []


def test_an_erased_resource_leaves_nothing_behind(world, ada):
    fork(world.thread.pk, 6)

    report = erase_resource(world.thread.resource_id)

    assert not Resource.objects.exists()
    assert stored("Ada") == []
    assert report.counts["threads"] == 2
    with pytest.raises(Refused, match="no such resource"):
        erase_resource(0)
