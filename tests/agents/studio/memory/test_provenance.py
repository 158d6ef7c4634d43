from agents.studio.memory.provenance import provenance_of
from memory.models import Blob, Line
from memory.models.blob import digest
from memory.services.edit import edit
from memory.services.erase import erase_messages
from memory.services.note import note
from tests.memory.services.editing import condense, line


def of(found):
    related = "observation__record__resource", "observation__cycle"
    return provenance_of(Line.objects.select_related(*related).get(pk=found.pk))


def positions(found):
    return [message.position for message in found.messages]


def test_a_line_rests_on_exactly_the_messages_the_observer_named(world):
    found = of(world.a1)

    assert positions(found) == [3, 4]
    assert found.label.startswith("exact")
    assert found.messages[0].text == "Tell me about bees."
    assert found.messages[0].href == f"/chat/{world.thread.pk}/?from=3#message-3"
    assert found.call == f"/context/calls/{world.a.cycle_id}/"


def test_where_the_observer_named_none_all_it_read_counts(world):
    found = of(world.b0)

    assert positions(found) == [5, 6]
    assert found.label.startswith("range")


def test_a_changed_line_tells_all_it_said_and_who_changed_it(world, ada):
    new = edit(world.a1.pk, "Ada keeps wasps", author=ada, reason="She said so")

    found = of(new)

    assert [each.text for each in found.versions] == ["Ada keeps bees", "Ada keeps wasps"]
    assert (found.versions[1].words, found.versions[1].reason) == ("Edited by ada", "She said so")
    assert positions(found) == [3, 4]
    assert of(world.a1).versions == found.versions


def test_a_note_was_written_by_a_person(world, ada):
    found = of(note(world.record.pk, "Mine", author=ada))

    assert found.label.startswith("written by a person")
    assert found.messages == ()
    assert found.versions[0].words == "Noted by ada"


def test_through_reflections_a_line_leads_to_the_messages_of_what_it_stands_for(world):
    condense(world, "r", [world.a, world.b], "Ada keeps bees for honey", "Time")
    said = "<observations>\n* 🟡 Ada keeps bees for honey [#2,3]\n* 🟡 Time [#1]\n</observations>"
    Blob.objects.keep([said])
    world.r.cycle.reply_hash = digest(said)
    world.r.cycle.save()
    condense(world, "s", [world.r], "Bees")
    world.set(world.s0, first_position=1, last_position=6)
    again = "<observations>\n* 🟡 Bees [#1]\n</observations>"
    Blob.objects.keep([again])
    world.s.cycle.reply_hash = digest(again)
    world.s.cycle.save()

    found = of(world.s0)

    assert [each.text for each in found.parents] == ["Ada keeps bees for honey"]
    assert positions(found) == [3, 4, 5, 6]
    assert found.label.startswith("inherited")
    assert [each.text for each in of(world.r0).children] == ["Bees"]
    assert of(world.r1).children == ()


def test_erased_messages_are_told_as_erased(world, ada):
    new = note(world.record.pk, "Of messages that go", author=ada)
    world.set(new, first_position=1, last_position=1)
    world.set(new.observation, thread=world.thread)
    erase_messages(world.thread.pk, 7, 8, author=ada)
    edit(line(world.record, "Ada keeps bees").pk, "Ada keeps wasps")

    assert not of(world.a1).messages[0].erased
    world.set(world.a1, first_position=7, last_position=7)
    assert of(world.a1).messages[0].erased
