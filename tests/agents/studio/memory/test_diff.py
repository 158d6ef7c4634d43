from datetime import UTC, datetime
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from agents.studio.memory.diff import Links, differences, summary, words_between
from memory.models import Line


def line(text, **fields):
    fields.setdefault("said_at", datetime(2026, 3, 2, 10, tzinfo=UTC))
    fields.setdefault("kind", "medium")
    return Line(id=uuid4(), text=text, tokens=len(text), **fields)


def told(old, new, **links):
    return [
        (each.kind, [one.text for one in each.old], each.new and each.new.text)
        for each in differences(old, new, Links(**links))
    ]


def test_a_version_of_a_line_is_the_same_line_whatever_it_says():
    old, new = line("Budget is 8,000 euros"), line("Ruth comes on Tuesdays")

    assert told([old], [new], roots={new.pk: old.pk}) == [("reworded", [old.text], new.text)]


def test_the_same_words_pinned_are_marked_anew_and_the_same_line_is_kept():
    old, new, same = line("Oak"), line("Oak", pinned=True), line("Beech")

    found = told([old, same], [new, same], roots={new.pk: old.pk})

    assert [kind for kind, _, _ in found] == ["marked", "kept"]


def test_a_line_of_a_reflection_names_those_it_was_merged_from_through_others_too():
    one, two, three = line("Oak"), line("Beech"), line("Birch")
    middle, last = line("Oak and beech"), line("Woods")
    parents = {middle.pk: (one, two), last.pk: (middle, three)}

    assert told([one, two, three], [last], parents=parents) == [
        ("merged", ["Birch", "Oak", "Beech"], "Woods")
    ]


def test_what_a_reflection_says_word_for_word_is_kept_and_what_it_leaves_out_is_dropped_in_place():
    one, two, three = line("Oak is dear"), line("Ruth is the plumber"), line("No Fridays")
    first, second = line("Oak is dear"), line("Never on Fridays")
    parents = {first.pk: (one,), second.pk: (three,)}

    assert told([one, two, three], [first, second], parents=parents) == [
        ("kept", ["Oak is dear"], "Oak is dear"),
        ("dropped", ["Ruth is the plumber"], None),
        ("reworded", ["No Fridays"], "Never on Fridays"),
    ]


def test_what_nobody_linked_is_paired_by_likeness_within_a_day_and_by_its_words_across_days():
    later = datetime(2026, 3, 9, 10, tzinfo=UTC)
    old = [line("The budget is 8,000 euros"), line("Oak"), line("Tuesdays are fine")]
    new = [
        line("The budget is 9,000 euros"),
        line("Oak", said_at=later),
        line("Tuesdays are fine!", said_at=later),
    ]

    assert [kind for kind, _, _ in told(old, new)] == ["reworded", "moved", "dropped", "added"]


LINES = st.lists(st.text("ab ", min_size=1, max_size=6), max_size=7)


@given(LINES, LINES, st.data())
def test_every_line_of_both_sides_is_told_once_and_the_new_ones_in_order(old, new, data):
    before, after = [line(text) for text in old], [line(text) for text in new]
    roots = {}
    if before and after:
        pairs = zip(after, data.draw(st.permutations(before)), strict=False)
        roots = {a.pk: b.pk for a, b in pairs if data.draw(st.booleans())}

    found = differences(before, after, Links(roots=roots))

    assert [each.new for each in found if each.new] == after
    assert sorted(one.pk for each in found for one in each.old) == sorted(b.pk for b in before)
    assert sum(summary(found).values()) == len(found)


WORDS = st.lists(st.sampled_from(["oak", " ", "\n", "8,000", "€", "<b>", "ö"])).map("".join)


@given(WORDS, WORDS)
def test_the_words_marked_are_both_texts_again(old, new):
    segments = words_between(old, new)

    assert "".join(text for sign, text in segments if sign in "=-") == old
    assert "".join(text for sign, text in segments if sign in "=+") == new
    assert all(text for _, text in segments)


def test_the_words_that_changed_are_marked_alone():
    segments = words_between("budget is 8000 euros", "budget is 9000 euros")

    assert segments == (("=", "budget is "), ("-", "8000"), ("+", "9000"), ("=", " euros"))
