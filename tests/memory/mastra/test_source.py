"""The same is read from PostgreSQL as from a file."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from memory.mastra import jsonb, read
from memory.mastra.source import TABLES
from tests.memory.mastra.test_load import FILE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL"),
]

SCHEMA = "mastra_trial"
#: What Mastra's columns of PostgreSQL are; the others are text.
JSON = {"metadata", "observedMessageIds", "bufferedMessageIds", "bufferedObservationChunks"}
NUMBERS = {"generationCount"}
#: Its driver writes times without a zone in the zone of its machine.
ELSEWHERE = timedelta(hours=2)


def is_time(name):
    return name.endswith("At")


def column(name):
    """Return a column, and for a time the second one, as Mastra makes them."""
    if is_time(name):
        return f'"{name}" timestamp, "{name}Z" timestamptz'
    kind = "jsonb" if name in JSON else "integer" if name in NUMBERS else "text"
    return f'"{name}" {kind}'


def cells(name, value):
    """Return what the columns of a name hold."""
    if is_time(name):
        at = datetime.fromisoformat(value) if value else None
        return [at and (at + ELSEWHERE).replace(tzinfo=None), at]
    if name in JSON and value is not None:
        return [json.dumps(jsonb.loads(value) if isinstance(value, bytes) else json.loads(value))]
    return [value]


@pytest.fixture
def address():
    """Copy the file's tables into a schema of their own, and return where they are."""
    known = connection.settings_dict
    url = f"postgresql://{known['USER']}@{known['HOST']}:{known['PORT']}/{known['NAME']}"
    with psycopg.connect(url, autocommit=True) as target, closing(sqlite3.connect(FILE)) as source:
        target.execute(f"CREATE SCHEMA {SCHEMA}")
        try:
            for table in TABLES.values():
                copy(source, target, table)
            yield f"{url}?schema={SCHEMA}"
        finally:
            target.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def copy(source, target, table):
    found = source.execute(f"SELECT * FROM {table}")
    names = [each[0] for each in found.description]
    into = sql.Identifier(SCHEMA, table)
    columns = sql.SQL(", ".join(map(column, names)))
    target.execute(sql.SQL("CREATE TABLE {} ({})").format(into, columns))
    for row in found:
        held = [cell for name, value in zip(names, row, strict=True) for cell in cells(name, value)]
        marks = sql.SQL(", ".join(["%s"] * len(held)))
        target.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(into, marks), held)


def test_postgresql_holds_the_same_as_a_file(address):
    assert read(address) == read(str(FILE))
