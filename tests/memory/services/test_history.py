import pytest

from memory.models import Revision
from memory.services.change import Refused, Stale
from memory.services.edit import edit
from memory.services.forget import forget, show_again, unforget
from memory.services.history import compare, lines_at, revisions, undo
from memory.services.note import note
from memory.services.pin import pin
from memory.services.restore import preview, restore

from .editing import beekeeping, condense, line, observe, past, texts, wrong


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def words(lines):
    return [each.text for each in lines]


def test_revisions_come_latest_first_with_their_authors(world, ada):
    forget(world.a0.pk, author=ada, reason="Old")

    found = revisions(world.record.pk)
    assert [(row.number, row.cause) for row in found] == [
        (3, "forget"),
        (2, "activate"),
        (1, "activate"),
    ]
    assert (found[0].author, found[0].reason) == (ada, "Old")
    assert [row.number for row in revisions(world.record.pk, limit=1, before=3)] == [2]


def test_lines_can_be_read_as_of_any_revision(world):
    assert words(lines_at(world.record.pk, 1)) == ["Ada asked for the time", "Ada keeps bees"]
    assert lines_at(world.record.pk, 0) == []
    with pytest.raises(Refused, match="There is no revision 9; the latest is 2"):
        lines_at(world.record.pk, 9)


def test_a_comparison_pairs_the_versions_of_a_line(world):
    edit(world.a0.pk, "Ada asked for noon")
    edit(line(world.record, "Ada asked for noon").pk, "Ada asked for dawn")
    forget(world.a1.pk)

    found = compare(world.record.pk, 1, 5)

    assert words(found.added) == ["Ada asks about honey"]
    assert words(found.removed) == ["Ada keeps bees"]
    assert [words(pair) for pair in found.changed] == [
        ["Ada asked for the time", "Ada asked for dawn"]
    ]
    tokens = {n: sum(x.tokens for x in lines_at(world.record.pk, n)) for n in (1, 5)}
    assert found.tokens == tokens[5] - tokens[1]


def test_a_line_that_says_the_same_again_is_no_difference(world):
    forget(world.a0.pk)
    unforget(world.a0.pk)

    found = compare(world.record.pk, 2, 4)
    assert (found.added, found.removed, found.changed) == ((), (), ())


def test_what_a_reflection_dropped_is_what_it_removed(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    found = compare(world.record.pk, 2, 3)
    assert words(found.added) == ["Ada asked for things"]
    assert len(found.removed) == 3


CHANGES = {
    "edit": lambda w: edit(w.a0.pk, "Ada asked for noon"),
    "note": lambda w: note(w.record.pk, "Ada is careful"),
    "pin": lambda w: pin([w.a0.pk, w.b0.pk]),
    "forget": lambda w: forget([w.a0.pk, w.b0.pk]),
}
INVERSE = {"edit": "edit", "note": "forget", "pin": "pin", "forget": "restore"}


@pytest.mark.parametrize("cause", CHANGES)
def test_a_persons_change_is_undone_and_undone_again(world, ada, cause):
    before = texts(world.record)
    CHANGES[cause](world)
    after = texts(world.record)

    assert undo(world.record.pk, 3, author=ada) == 4
    assert texts(world.record) == before
    made = Revision.objects.get(record=world.record, number=4)
    assert (made.cause, made.author, made.reason) == (INVERSE[cause], ada, "Undid revision 3")

    undo(world.record.pk, 4)
    assert texts(world.record) == after
    assert wrong() == []


def test_an_undone_pin_lets_the_line_be_condensed(world):
    pin(world.a1.pk)
    undo(world.record.pk, 3)

    assert not line(world.record, "Ada keeps bees").pinned


def test_a_restore_is_undone(world):
    forget(world.a0.pk)
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    before = texts(world.record)
    restore(world.record.pk, 2)

    undo(world.record.pk, 5)
    assert texts(world.record) == before
    assert wrong() == []


def test_what_was_changed_again_cannot_be_undone_and_is_shown(world):
    edit(world.a0.pk, "Ada asked for noon")
    edit(line(world.record, "Ada asked for noon").pk, "Ada asked for dawn")

    with pytest.raises(Stale, match="changed again since") as error:
        undo(world.record.pk, 3)
    assert error.value.theirs == "Ada asked for dawn"


def test_what_a_reflection_condensed_since_cannot_be_undone(world):
    edit(world.a0.pk, "Ada asked for noon")
    condense(world, "r", [world.a, world.b], "Ada asked for things")

    with pytest.raises(Stale):
        undo(world.record.pk, 3)


@pytest.mark.parametrize(
    "show", [lambda world, gone: undo(world.record.pk, 4), lambda world, gone: unforget(gone.pk)]
)
def test_a_forgotten_reflection_does_not_return_beside_what_it_condensed(world, show):
    condense(world, "r", [world.a, world.b], "Ada asked for things", "Ada keeps bees")
    gone = line(world.record, "Ada asked for things")
    forget(gone.pk)
    restore(world.record.pk, 2)
    before = texts(world.record)

    with pytest.raises(Refused, match="would be told twice"):
        show(world, gone)
    assert texts(world.record) == before


def test_nor_beside_what_condensed_that_anew(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    forget(line(world.record, "Ada asked for things").pk)
    restore(world.record.pk, 2)
    condense(world, "again", [world.a, world.b], "Ada asked for time, bees and honey")

    with pytest.raises(Refused, match="would be told twice"):
        undo(world.record.pk, 4)
    assert texts(world.record) == ["Ada asked for time, bees and honey"]


def test_what_was_forgotten_before_a_restore_to_then_is_not_what_a_later_reflection_took(world):
    gone = line(world.record, "Ada keeps bees")
    forget(gone.pk)
    show_again(gone.pk)
    condense(world, "r", [world.a, world.b], "Ada asked for things and keeps bees")
    restore(world.record.pk, 3)

    unforget(gone.pk)

    assert "Ada keeps bees" in texts(world.record)


def test_undoing_a_restore_brings_back_why_a_line_was_out_of_sight(world):
    gone = line(world.record, "Ada keeps bees")
    forget(gone.pk)
    show_again(gone.pk)
    condense(world, "r", [world.a, world.b], "Ada asked for things and keeps bees")
    restore(world.record.pk, 3)
    undo(world.record.pk, 6)

    with pytest.raises(Refused, match="not forgotten"):
        unforget(gone.pk)


def test_a_forgotten_line_returns_although_a_source_is_shown_beside_its_reflection(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    show_again(world.a0.pk)
    before = texts(world.record)
    forget(line(world.record, "Ada asked for things").pk)

    undo(world.record.pk, 5)

    assert texts(world.record) == before


def test_only_peoples_changes_can_be_undone(world):
    with pytest.raises(Refused, match="restore the revision before it instead"):
        undo(world.record.pk, 2)
    with pytest.raises(Refused, match="There is no revision 7"):
        undo(world.record.pk, 7)


# restore


@pytest.fixture
def settled(world):
    """Show the buffered observation too, so that more can be observed after it."""
    world.record.refresh_from_db()
    number = world.revise("activate")
    world.set(world.d, since=number, place=number)
    world.set(world.d0, since=number)
    world.settle()
    world.record.refresh_from_db()
    world.d.refresh_from_db()
    return world


def test_restore_undoes_edits_and_forgets_but_not_what_was_observed_since(settled):
    edit(settled.a0.pk, "Ada asked for noon")
    forget(settled.b0.pk)
    observe(settled, "e", 9, 10, "Ada asks about wax")
    before = past(settled.record)

    assert restore(settled.record.pk, 2) == 7

    assert texts(settled.record) == [
        "Ada asked for the time",
        "Ada keeps bees",
        "Ada asks about honey",
        "Ada asks about swarms",
        "Ada asks about wax",
    ]
    assert before.items() <= past(settled.record).items()
    assert wrong() == []


def test_restore_before_a_reflection_shows_its_sources_and_what_came_later(settled):
    condense(settled, "r", [settled.a, settled.b], "Ada asked for things")
    observe(settled, "e", 9, 10, "Ada asks about wax")
    condense(settled, "q", [settled.r, settled.d, settled.e], "Ada asked for more")
    assert texts(settled.record) == ["Ada asked for more"]
    before = past(settled.record)

    restore(settled.record.pk, 3)
    assert texts(settled.record) == [
        "Ada asked for the time",
        "Ada keeps bees",
        "Ada asks about honey",
        "Ada asks about swarms",
        "Ada asks about wax",
    ]
    restore(settled.record.pk, 4)
    assert texts(settled.record) == [
        "Ada asked for things",
        "Ada asks about swarms",
        "Ada asks about wax",
    ]
    restore(settled.record.pk, 6)
    assert texts(settled.record) == ["Ada asked for more"]
    assert before.items() <= past(settled.record).items()

    # What was observed after the first revision is not lost, however often it was condensed.
    restore(settled.record.pk, 1)
    assert texts(settled.record) == [
        "Ada asked for the time",
        "Ada keeps bees",
        "Ada asks about honey",
        "Ada asks about swarms",
        "Ada asks about wax",
    ]
    assert wrong() == []


def test_what_was_observed_later_comes_back_as_it_was_edited_and_stays_forgotten(settled):
    observe(settled, "e", 9, 10, "Ada asks about wax", "Ada sighs")
    edit(settled.e0.pk, "Ada asks about candles")
    forget(settled.e1.pk)
    condense(settled, "r", [settled.a, settled.b, settled.d, settled.e], "Ada asked for things")

    restore(settled.record.pk, 3)

    assert texts(settled.record)[-1] == "Ada asks about candles"
    assert "Ada sighs" not in texts(settled.record)
    assert wrong() == []


def test_what_was_forgotten_stays_so_through_restores_back_and_forth(settled):
    forget(settled.b0.pk)
    condense(settled, "r", [settled.a, settled.b], "Ada asked for things")
    restore(settled.record.pk, 4)
    restore(settled.record.pk, 5)

    restore(settled.record.pk, 1)

    assert texts(settled.record) == [
        "Ada asked for the time",
        "Ada keeps bees",
        "Ada asks about swarms",
    ]
    assert wrong() == []


def test_restore_takes_away_notes_and_lines_shown_again_since(world):
    forget(world.a0.pk)
    note(world.record.pk, "Ada is careful")
    show_again(world.a0.pk)

    restore(world.record.pk, 3)

    assert texts(world.record) == ["Ada keeps bees", "Ada asks about honey"]
    assert wrong() == []


def test_restoring_what_is_shown_already_is_refused(world):
    forget(world.a0.pk)
    unforget(world.a0.pk)

    with pytest.raises(Refused, match="Memory is as it was at revision 2 already"):
        restore(world.record.pk, 2)
    for number in (-1, 4, 9):
        with pytest.raises(Refused, match=f"Revision {number} cannot be restored"):
            restore(world.record.pk, number)


def test_lines_restored_are_condensed_by_the_next_reflection(world):
    condense(world, "r", [world.a, world.b], "Ada asked for things")
    restore(world.record.pk, 2)
    condense(world, "q", [world.a, world.b], "Ada asked for this and that")

    assert texts(world.record) == ["Ada asked for this and that"]
    assert wrong() == []


def test_a_restore_is_told_in_numbers_before_it_is_done(world):
    edit(world.a0.pk, "Ada asked for noon")
    forget(line(world.record, "Ada keeps bees").pk)
    note(world.record.pk, "A note")

    told = preview(world.record.pk, 2)
    restore(world.record.pk, 2)

    assert (told.shown, told.hidden, told.changed) == (1, 1, 1)
    latest = revisions(world.record.pk)[0]
    assert (told.tokens_before, told.tokens_after) == (latest.tokens_before, latest.tokens_after)
    assert preview(world.record.pk, 2).changes_nothing
