"""Append messages as the servers of the earlier state do, while the schema changes under them."""

import sqlite3
import time
from threading import Event, Thread

import psycopg

#: How long a server waits for a lock before it gives an append up, and so the bound of each.
BOUND = {"PostgreSQL": 2.0, "SQLite": 20.0}
NEW_ID = {"PostgreSQL": "gen_random_uuid()", "SQLite": "lower(hex(randomblob(16)))"}

NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})"
APPENDED = """
INSERT INTO memory_message (thread_id, position, kind, payload, text, tokens, model, created_at)
SELECT thread_id, {position}, kind, payload, text, tokens, model, created_at
FROM memory_message {beside} WHERE id = {pattern}
"""
TURNS = """
INSERT INTO agents_turn (id, thread_id, number, key, status, prompt, attachments, draft_text,
    stop_requested, usage, error, first_position, last_position, created_at, started_at,
    finished_at)
SELECT {id}, thread_id, 1000 + n, {id}, 'done', prompt, attachments, '',
    stop_requested, usage, '', {last} + n, {last} + n, created_at, started_at, finished_at
FROM agents_turn, numbers WHERE id = (SELECT id FROM agents_turn
    WHERE thread_id = {thread} AND status = 'done' ORDER BY number LIMIT 1)
"""


def connect(database):
    """Connect as a server does; each statement commits unless a transaction is begun."""
    if database.name == "PostgreSQL":
        wait = f"-c lock_timeout={BOUND['PostgreSQL']:.0f}s"
        return psycopg.connect(database.url, autocommit=True, options=wait)
    path = database.url.removeprefix("sqlite:///")
    return sqlite3.connect(
        path, timeout=BOUND["SQLite"], isolation_level=None, check_same_thread=False
    )


def pattern_of(database):
    """Return a message to say again, which calls no tool, and whose conversation it is in."""
    pk, thread = database.rows(
        "SELECT m.id, m.thread_id FROM memory_message m JOIN memory_thread t ON t.id = m.thread_id "
        "WHERE m.kind = 'response' AND t.title = 'Kitchen refit' "
        "AND CAST(m.payload AS text) NOT LIKE '%tool-call%' ORDER BY m.id LIMIT 1"
    )[0]
    return pk, f"'{thread}'"


def fill(database, many):
    """Make a conversation so long that a careless migration of its rows would be noticed."""
    pattern, thread = pattern_of(database)
    last = database.rows(f"SELECT last_position FROM memory_thread WHERE id = {thread}")[0][0]
    connection = connect(database)
    numbers = NUMBERS.format(many)
    connection.execute("BEGIN")
    connection.execute(
        numbers + APPENDED.format(position=f"{last} + n", beside=", numbers", pattern=pattern)
    )
    turns = TURNS.format(id=NEW_ID[database.name], last=last, thread=thread)
    connection.execute(numbers + turns)
    connection.execute(
        f"UPDATE memory_thread SET last_position = {last + many} WHERE id = {thread}"
    )
    connection.execute("COMMIT")
    connection.close()


class Writer:
    """Append one message after another in a thread of its own, and time each."""

    def __init__(self, database):
        self._pattern, self._thread = pattern_of(database)
        self._begin = "BEGIN IMMEDIATE" if database.name == "SQLite" else "BEGIN"
        self._connection = connect(database)
        self._ended, self._appended = Event(), Event()
        self._runs = Thread(target=self._run, daemon=True)
        self.positions, self.longest, self.failure = [], 0.0, None

    def __enter__(self):
        self._runs.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._runs.join()
        self._connection.close()

    def appends(self):
        """Wait until a message was appended from now on."""
        self._appended.clear()
        assert self._appended.wait(60)
        assert self.failure is None, self.failure

    def _run(self):
        while not self._ended.is_set():
            began = time.perf_counter()
            try:
                self._append()
            except (psycopg.Error, sqlite3.Error) as failure:
                self.failure = failure
                self._appended.set()
                return
            self.longest = max(self.longest, time.perf_counter() - began)
            self._appended.set()

    def _append(self):
        self._connection.execute(self._begin)
        taken = self._connection.execute(
            "UPDATE memory_thread SET last_position = last_position + 1 "
            f"WHERE id = {self._thread} RETURNING last_position"
        )
        position = taken.fetchone()[0]
        self._connection.execute(
            APPENDED.format(position=position, beside="", pattern=self._pattern)
        )
        self._connection.execute("COMMIT")
        self.positions.append(position)
