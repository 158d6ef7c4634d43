"""Erasing destroys what somebody wrote, or read and keeps, while it was about to."""

from contextlib import contextmanager

import pytest
from django.db import connection

from memory.models import Line, Thread
from memory.services import kept
from memory.services.append import append
from memory.services.edit import edit
from memory.services.erase import erase_line, erase_messages
from memory.services.look import look
from tests.memory.services.editing import beekeeping, line

from .play import AT, question


@contextmanager
def before_the_first(statement, meanwhile):
    """Do something once, right before a statement that begins so."""
    todo = [meanwhile]

    def others_first(execute, sql, params, many, context):
        if todo and sql.replace('"', "").startswith(statement):
            todo.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(others_first):
        yield
    assert not todo


def test_a_version_written_between_reading_and_locking_is_erased_too(resource):
    record = beekeeping(resource).record
    doomed = line(record, "Ada keeps bees")

    with before_the_first(
        "UPDATE memory_memoryrecord", lambda: edit(doomed.pk, "Ada keeps bees on the roof")
    ):
        erase_line(doomed.pk)

    assert not Line.objects.filter(text__contains="keeps bees").exists()


@pytest.mark.parametrize("scope", ["thread", "resource"])
def test_nobody_keeps_what_was_read_before_there_was_a_memory(resource, scope):
    resource.scope = scope
    resource.save()
    told, looking = (Thread.objects.create(resource=resource, agent="tester") for _ in range(2))
    if scope == "thread":
        looking = told
    append(told.pk, [question("The code is 7481.")], at=AT)
    kept.forget_everything()

    with before_the_first("UPDATE memory_me", lambda: look(looking.pk)):
        erase_messages(told.pk)

    (tail,) = (each for each in look(looking.pk).tails if each.thread == told.pk)
    assert "7481" not in str([raw.row.payload for raw in tail.raw])
