import sqlite3

import psycopg
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError

from agents.away import insist, is_away


def caused(kind, cause):
    try:
        raise kind(str(cause)) from cause
    except kind as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        caused(OperationalError, psycopg.OperationalError("connection refused")),
        caused(InterfaceError, psycopg.InterfaceError("the connection is closed")),
        caused(OperationalError, psycopg.errors.AdminShutdown("terminating connection")),
        caused(OperationalError, psycopg.errors.DeadlockDetected("deadlock")),
        caused(OperationalError, psycopg.errors.TooManyConnections("too many clients")),
        caused(OperationalError, sqlite3.OperationalError("database is locked")),
    ],
    ids=lambda error: str(error),
)
def test_what_passes_by_itself_is_away(error):
    assert is_away(error)


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("a mistake"),
        caused(IntegrityError, psycopg.errors.UniqueViolation("twice")),
        caused(OperationalError, sqlite3.OperationalError("no such table: memory_thread")),
        caused(OperationalError, psycopg.errors.InvalidCatalogName("there is no such database")),
    ],
    ids=lambda error: str(error),
)
def test_what_somebody_must_mend_is_not(error):
    assert not is_away(error)


class Database:
    """Be away so many times, then count what is written."""

    def __init__(self, times, error=None):
        self.times = times
        self.error = error or caused(OperationalError, psycopg.OperationalError("refused"))
        self.asked = 0

    def write(self):
        self.asked += 1
        if self.asked <= self.times:
            raise self.error
        return "written"


@pytest.mark.django_db(transaction=True)
async def test_what_cannot_be_sent_again_is_written_when_the_database_is_back():
    database = Database(2)
    assert await insist(database.write, pauses=[0, 0, 0]) == "written"
    assert database.asked == 3


@pytest.mark.django_db(transaction=True)
async def test_in_the_end_it_is_given_up():
    database = Database(9)
    with pytest.raises(OperationalError):
        await insist(database.write, pauses=[0, 0])
    assert database.asked == 3


async def test_a_mistake_is_not_repeated():
    database = Database(9, ValueError("a mistake"))
    with pytest.raises(ValueError, match="a mistake"):
        await insist(database.write, pauses=[0, 0])
    assert database.asked == 1
