"""A small memory written row by row, to change with the services, and what is seen of it."""

from memory.models import Line, MemoryRecord
from memory.services.look import visible_lines
from memory.verify import verify
from tests.memory.verify.conftest import answer, call, empty_world, result, user

__all__ = ["answer", "call", "empty_world", "result", "user"]


def beekeeping(resource):
    """Return a world of two shown observations, a buffered one and a raw tail, at revision 2.

    Each topic is a question and an answer; the first observation covers two of them.
    """
    world = empty_world(resource)
    for topic in ("time", "bees", "honey", "swarms", "wax"):
        world.say(user(f"Tell me about {topic}."), answer(f"There is much to say of {topic}."))
    world.observe("a", 1, 4, "Ada asked for the time", "Ada keeps bees", since=shown(world))
    world.observe("b", 5, 6, "Ada asks about honey", since=shown(world))
    world.observe("d", 7, 8, "Ada asks about swarms")
    rest(world, "a0", 1, 2)
    rest(world, "a1", 3, 4)
    world.settle()
    world.record.refresh_from_db()
    return world


def shown(world):
    return world.revise("activate")


def rest(world, name, first, last):
    """Let a line rest on a part of what its observation covers."""
    world.set(world.rows[name], first_position=first, last_position=last)
    world.rows[name].refresh_from_db()


def condense(world, name, sources, *texts):
    """Condense rows, as a reflection shown at the next revision."""
    world.record.refresh_from_db()
    world.reflect(name, sources, *texts, since=world.revise("reflect"))
    world.settle()
    world.record.refresh_from_db()


def observe(world, name, first, last, *texts):
    """Observe messages, shown at the next revision."""
    world.record.refresh_from_db()
    world.observe(name, first, last, *texts, since=world.revise("observe"))
    world.settle()
    world.record.refresh_from_db()


def texts(record, number=None):
    """Return what is visible now, or was at a revision, in order."""
    record = MemoryRecord.objects.get(pk=record.pk)
    at = record.revision if number is None else number
    return [line.text for line in visible_lines(record.pk, at)]


def line(record, text):
    """Return the visible line that says a text."""
    return Line.objects.get(observation__record=record, text=text, until=None, since__gt=0)


def past(record):
    """Return what was visible at each revision up to now."""
    record = MemoryRecord.objects.get(pk=record.pk)
    return {n: texts(record, n) for n in range(1, record.revision + 1)}


def wrong():
    """Return what is found to be wrong in all of memory: nothing, when all is well."""
    return [f"{found.invariant}: {found.sentence}" for found in verify().violations]
