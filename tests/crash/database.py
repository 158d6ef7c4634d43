"""A database of its own for a replay that is killed, watched from outside, without Django."""

import fcntl
import json
import os
import sqlite3
import struct
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg

WAL_WRITE_LOCK = 120
"""The byte of a SQLite database's -shm file that the one writer holds locked."""
FLOCK = "hhqqi4x"


class Locked(Exception):
    """Another process holds the whole database, and did not let go in time."""


class Sqlite:
    """Watch a SQLite file."""

    name = "SQLite"

    def __init__(self, path, patience=20):
        self.url = f"sqlite:///{path}"
        self._path = path
        self._patience = patience

    def rows(self, statement):
        """Return what a statement finds. Raises Locked."""
        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=self._patience)
        try:
            return connection.execute(statement).fetchall()
        except sqlite3.OperationalError as refused:
            if refused.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise Locked(str(refused)) from refused
            raise
        finally:
            connection.close()

    def writing(self, pid):
        """Tell whether a process is inside a write transaction: it holds the write lock."""
        try:
            shared = os.open(f"{self._path}-shm", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, WAL_WRITE_LOCK, 1, 0)
            found = fcntl.fcntl(shared, fcntl.F_GETLK, wanted)
        finally:
            os.close(shared)
        kind, _, _, _, holder = struct.unpack(FLOCK, found)
        return kind == fcntl.F_WRLCK and holder == pid


class Postgres:
    """Watch a PostgreSQL database."""

    name = "PostgreSQL"

    def __init__(self, url):
        self.url = url
        self._connection = None

    def rows(self, statement):
        """Return what a statement finds."""
        return self._connected().execute(statement).fetchall()

    def writing(self, pid):
        """Tell whether the one client has written and not committed: its backend has an xid."""
        return bool(
            self.rows(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND "
                "pid <> pg_backend_pid() AND backend_xid IS NOT NULL "
                "AND state = 'idle in transaction'"
            )
        )

    def _connected(self):
        if self._connection is None:
            self._connection = psycopg.connect(self.url, autocommit=True)
        return self._connection

    def close(self):
        """Leave the database, so that it can be dropped."""
        if self._connection is not None:
            self._connection.close()


@contextmanager
def own_database(directory):
    """Give a new database: beside the PostgreSQL that DATABASE_URL names, else a SQLite file."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        yield Sqlite(Path(directory) / "crash.sqlite3")
        return
    name = f"omsite_crash_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        database = Postgres(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))
        try:
            yield database
        finally:
            database.close()
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def decoded(value):
    """Return a JSON column's value, which SQLite keeps as text."""
    return json.loads(value) if isinstance(value, str) else value
