import pytest

from memory.models import Blob, Observation
from memory.models.blob import digest
from memory.services.merged import merged

from .editing import beekeeping, condense, texts


@pytest.fixture
def world(resource):
    return beekeeping(resource)


def reply(world, text):
    """Let the reflection have been written by this reply."""
    Blob.objects.keep([text])
    cycle = world.r.cycle
    cycle.reply_hash = digest(text)
    cycle.save()


def of(world):
    (found,) = merged(Observation.objects.filter(pk=world.r.pk).select_related("cycle"))
    return found


def said(lines):
    return [line.text for line in lines]


def test_a_line_stands_for_those_the_reflector_named_and_the_rest_was_dropped(world):
    condense(world, "r", [world.a, world.b], "Ada keeps bees for honey")
    reply(world, "<observations>\n* 🟡 Ada keeps bees for honey [#2,3]\n</observations>")

    found = of(world)

    assert found.exact
    assert said(found.parents[world.r0.pk]) == ["Ada keeps bees", "Ada asks about honey"]
    assert said(found.dropped) == ["Ada asked for the time"]


@pytest.mark.parametrize(
    "text", ["", "<observations>\n* 🟡 Other words [#1]\n</observations>", "No list at all."]
)
def test_without_the_reply_it_was_written_from_the_messages_have_to_do(world, text):
    condense(world, "r", [world.a, world.b], "Ada keeps bees")
    world.set(world.r0, first_position=3, last_position=6)
    if text:
        reply(world, text)

    found = of(world)

    assert not found.exact
    assert said(found.parents[world.r0.pk]) == ["Ada keeps bees", "Ada asks about honey"]
    assert said(found.dropped) == ["Ada asked for the time"]


def test_a_pinned_line_was_not_condensed_and_so_not_dropped(world):
    world.set(world.a0, pinned=True)
    condense(world, "r", [world.a, world.b], "All of it")

    assert said(of(world).before) == ["Ada keeps bees", "Ada asks about honey"]
    assert "Ada asked for the time" in texts(world.record)


def test_many_reflections_take_four_statements(world, django_assert_num_queries):
    condense(world, "r", [world.a, world.b], "All of it")
    reply(world, "<observations>\n* 🟡 All of it [#1-3]\n</observations>")
    condense(world, "s", [world.r], "All")
    rows = list(Observation.objects.filter(kind="reflection").select_related("cycle"))

    with django_assert_num_queries(4):
        found = merged(rows)

    assert [said(each.before) for each in found][1:] == [["All of it"]]
