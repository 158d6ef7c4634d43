"""A conversation whose memory has been observed, edited and condensed."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.services import operate
from memory.services.edit import edit
from memory.services.look import look
from memory.services.note import note
from tests.fakes import Models

from .lives import say


@pytest.fixture
def lived(thread, ada):
    """Return a thread with three answered turns, an observation, a note, an edit, a reflection."""
    from asgiref.sync import async_to_sync

    for number in range(3):
        say(thread, number + 1, author=ada)
    async_to_sync(operate.observe_now)(thread.pk, resolve=Models())
    record = look(thread.pk).record
    line = note(record.pk, "Oak costs eighty euros", author=ada, thread_id=thread.pk)
    edit(line.pk, "Oak costs ninety euros", author=ada, reason="It rose in May.")
    async_to_sync(operate.reflect_now)(thread.pk, resolve=Models())
    return thread


@pytest.fixture
def noon():
    return datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def later():
    """Return a function that returns a time some seconds after another."""
    return lambda at, seconds: at + timedelta(seconds=seconds)
