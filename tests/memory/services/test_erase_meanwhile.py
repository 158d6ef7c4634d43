"""Erasing a line destroys the version that somebody wrote while it was about to."""

from django.db import connection

from memory.models import Line
from memory.services.edit import edit
from memory.services.erase import erase_line
from tests.memory.services.editing import beekeeping, line


def test_a_version_written_between_reading_and_locking_is_erased_too(resource):
    record = beekeeping(resource).record
    doomed = line(record, "Ada keeps bees")
    meanwhile = [lambda: edit(doomed.pk, "Ada keeps bees on the roof")]

    def others_first(execute, sql, params, many, context):
        if meanwhile and sql.replace('"', "").startswith("UPDATE memory_memoryrecord"):
            meanwhile.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(others_first):
        erase_line(doomed.pk)

    assert not meanwhile
    assert not Line.objects.filter(text__contains="keeps bees").exists()
