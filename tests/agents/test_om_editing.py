import io

import pytest
from django.core.management import CommandError

from agents.om import erase
from memory.models import Message, Resource, Revision, Thread
from memory.services.scope import change_scope
from tests.agents.om_commands import om, refused
from tests.memory.services.editing import beekeeping, line, texts, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def test_a_line_is_edited_by_somebody_for_a_reason(world, ada):
    said = om("edit", world.a0.pk, "Ada asked for noon", "--author", "ada", "--reason", "So")

    assert said == f"Revision 3: line {line(world.record, 'Ada asked for noon').pk} says it now.\n"
    made = Revision.objects.get(record=world.record, number=3)
    assert (made.author, made.reason) == (ada, "So")


def test_a_stale_edit_is_refused_with_both_texts(world):
    om("edit", world.a0.pk, "Ada asked for noon")

    assert refused("edit", world.a0.pk, "Ada asked for dawn") == (
        "Somebody changed this line meanwhile. It says now: “Ada asked for noon”. "
        "Yours was: “Ada asked for dawn”."
    )


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["edit", "LINE", " "], "The line is empty."),
        (["edit", "LINE", "Other", "--author", "eve"], "There is no user eve."),
        (["note", "LINE", "Other"], "There is no memory"),
        (["fork", "THREAD", "3"], "The nearest to fork at: 2 and 4."),
        (["restore", "THREAD", "9"], "Revision 9 cannot be restored"),
        (["history", "THREAD", "--at", "9"], "There is no revision 9"),
        (["forget", "LINE", "LINE", "--undo"], "With --undo, name one line."),
        (["erase", "--resource", "eve", "--yes"], "There is no resource eve"),
        (["erase", "--person", "eve", "--yes"], "There is no user eve."),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(world, args, sentence):
    ids = {"LINE": world.a0.pk, "THREAD": world.thread.pk}
    assert sentence in refused(*[ids.get(arg, arg) for arg in args])


def test_a_note_of_one_conversation_in_a_shared_memory_belongs_to_it(world):
    (shared,) = change_scope(world.thread.resource_id, "resource")
    om("note", world.thread.pk, "Ada is careful")
    om("note", shared.pk, "All are careful")

    assert line(shared, "Ada is careful").observation.thread == world.thread
    assert line(shared, "All are careful").observation.thread is None


def test_lines_are_noted_pinned_forgotten_and_shown_again(world):
    om("note", world.thread.pk, "Ada is careful", "--kind", "medium")
    om("pin", world.a0.pk, world.a1.pk)
    om("pin", line(world.record, "Ada keeps bees").pk, "--off")
    om("forget", world.b0.pk)
    assert texts(world.record) == ["Ada asked for the time", "Ada keeps bees", "Ada is careful"]

    om("forget", world.b0.pk, "--undo")
    assert "Ada asks about honey" in texts(world.record)
    assert [line(world.record, text).pinned for text in texts(world.record)] == [
        True,
        False,
        False,
        False,
    ]
    assert wrong() == []


def test_a_revision_is_restored_or_undone(world):
    om("forget", world.a0.pk)
    om("forget", world.a1.pk)

    assert om("restore", world.record.pk, 3, "--undo") == "Revision 5: undid revision 3.\n"
    assert om("restore", world.record.pk, 2) == "Revision 6: restored revision 2.\n"
    assert texts(world.record) == texts(world.record, 2)


def test_the_history_shows_revisions_lines_and_differences(world, ada):
    om("edit", world.a0.pk, "Ada asked for noon", "--author", "ada", "--reason", "It was noon")
    om("forget", world.a1.pk)

    revisions = om("history", world.thread.pk).splitlines()
    assert [row.split()[0] for row in revisions[1:]] == ["4", "3", "2", "1"]
    assert "edit" in revisions[2]
    assert revisions[2].endswith("It was noon")
    lines = om("history", world.record.pk, "--at", 2)
    assert f"{world.a0.pk}  medium       Ada asked for the time" in lines
    assert om("history", world.record.pk, "--compare", 1, 4).splitlines()[:4] == [
        "- Ada keeps bees",
        "+ Ada asks about honey",
        "- Ada asked for the time",
        "+ Ada asked for noon",
    ]


def test_a_conversation_is_forked(world):
    said = om("fork", world.thread.pk, 4, "--title", "Again")

    fork = Thread.objects.get(parent=world.thread)
    assert said == f"Forked “Again” at position 4: conversation {fork.pk}.\n"


@pytest.mark.parametrize("of", ["thread", "record"])
def test_memory_is_cleared(world, of):
    said = om("clear", getattr(world, of).pk)

    assert said == "Revision 3: cleared 3 lines, discarded 1 chunks.\n"
    assert texts(world.record) == []


def test_erasing_reports_what_went(world):
    said = om("erase", "--messages", world.thread.pk, "--range", 3, 4, "--yes")

    assert said.startswith("Erased ")
    assert "2 messages" in said
    assert "1 lines" in said
    assert om("erase", "--line", world.a0.pk, "--yes").startswith("Erased 1 lines")
    om("erase", "--thread", world.thread.pk, "--yes")
    assert not Thread.objects.exists()
    assert om("erase", "--resource", "ada", "--yes") == "Erased 1 resources.\n"


def test_a_person_is_erased(world, ada):
    om("erase", "--person", "ada", "--yes")

    assert not Resource.objects.exists()


def test_nothing_is_erased_unless_its_name_is_typed(world):
    asked = []

    def answer(text):
        def ask(question):
            asked.append(question)
            return text

        return ask

    chosen = {
        **dict.fromkeys(("messages", "line", "thread", "person", "author")),
        "resource": "ada",
        "range": (),
        "spare_forks": False,
        "reason": "",
    }
    with pytest.raises(CommandError, match="Nothing was erased"):
        erase.run(io.StringIO(), yes=False, ask=answer("no"), **chosen)
    assert Message.objects.exists()
    assert asked == ["This cannot be undone. Type ada to go on: "]

    erase.run(io.StringIO(), yes=False, ask=answer("ada"), **chosen)
    assert not Message.objects.exists()
