"""Read Mastra's tables into plain values, from a libsql file or a PostgreSQL schema."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from . import jsonb

TABLES = {
    "threads": "mastra_threads",
    "messages": "mastra_messages",
    "records": "mastra_observational_memory",
}
Row = Mapping[str, Any]


class BadSource(ValueError):
    """Say why a source cannot be read."""


@dataclass(frozen=True)
class SourceThread:
    """Hold one conversation; ``memory`` is what its metadata says of observational memory."""

    id: str
    resource: str
    title: str
    created_at: datetime
    updated_at: datetime
    memory: Row


@dataclass(frozen=True)
class SourceMessage:
    """Hold one stored message, as its parts."""

    id: str
    thread: str
    role: str
    created_at: datetime
    parts: tuple[Row, ...]


@dataclass(frozen=True)
class SourceRecord:
    """Hold one generation of a memory: of a thread, or of a resource."""

    resource: str
    thread: str | None
    generation: int
    text: str
    observed_at: datetime | None
    observed: frozenset[str]
    chunks: int
    created_at: datetime


@dataclass(frozen=True)
class Source:
    """Hold all that was read, in the order it was made."""

    threads: tuple[SourceThread, ...]
    messages: tuple[SourceMessage, ...]
    records: tuple[SourceRecord, ...] = field(default=())


def read(address: str) -> Source:
    """Return what a database holds.

    ``address`` is a libsql or SQLite file, or postgresql://…, with ?schema=NAME where the tables
    are not in ``public``. Raises BadSource.
    """
    rows = _postgres(address) if address.startswith("postgres") else _sqlite(address)
    try:
        return Source(
            threads=tuple(sorted(map(_thread, rows["threads"]), key=lambda each: each.created_at)),
            messages=tuple(sorted(_messages(rows["messages"]), key=lambda each: each.created_at)),
            records=tuple(
                sorted(map(_record, rows["records"]), key=lambda e: (e.generation, e.created_at))
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadSource(f"The tables are not as Mastra 1 writes them: {error!r}") from error


def _sqlite(path: str) -> dict[str, list[dict[str, Any]]]:
    if not Path(path).is_file():
        raise BadSource(f"There is no file {path}.")
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return {
                name: [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')]
                for name, table in TABLES.items()
            }
    except sqlite3.DatabaseError as error:
        raise BadSource(f"{path} holds no tables of Mastra: {error}") from error


def _postgres(address: str) -> dict[str, list[dict[str, Any]]]:
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query))
    schema = query.pop("schema", "public")
    plain = urlunsplit(parts._replace(query="&".join(f"{k}={v}" for k, v in query.items())))
    try:
        with psycopg.connect(plain, row_factory=dict_row, connect_timeout=10) as connection:
            connection.read_only = True
            return {
                name: connection.execute(
                    sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, table))
                ).fetchall()
                for name, table in TABLES.items()
            }
    except psycopg.Error as error:
        raise BadSource(f"The tables of Mastra cannot be read: {error}") from error


def _thread(row: Row) -> SourceThread:
    metadata = _json(row["metadata"]) or {}
    return SourceThread(
        id=row["id"],
        resource=row["resourceId"],
        title=row["title"] or "",
        created_at=_time(row, "createdAt"),
        updated_at=_time(row, "updatedAt"),
        memory=(metadata.get("mastra") or {}).get("om") or {},
    )


def _messages(rows: Sequence[Row]) -> Iterator[SourceMessage]:
    for row in rows:
        content = _json(row["content"])
        parts = content.get("parts") if isinstance(content, dict) else None
        if parts is None:
            parts = [{"type": "text", "text": content if isinstance(content, str) else ""}]
        at = _time(row, "createdAt")
        yield SourceMessage(row["id"], row["thread_id"], row["role"], at, tuple(parts))


def _record(row: Row) -> SourceRecord:
    chunks = _json(row["bufferedObservationChunks"]) or []
    return SourceRecord(
        resource=row["resourceId"],
        thread=row["threadId"] if row["scope"] == "thread" else None,
        generation=int(row["generationCount"] or 0),
        text=row["activeObservations"] or "",
        observed_at=_moment(row, "lastObservedAt"),
        observed=frozenset(_json(row["observedMessageIds"]) or ()),
        chunks=len(chunks),
        created_at=_time(row, "createdAt"),
    )


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return jsonb.loads(value)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _time(row: Row, name: str) -> datetime:
    found = _moment(row, name)
    if found is None:
        raise ValueError(f"{name} is missing")
    return found


def _moment(row: Row, name: str) -> datetime | None:
    # In PostgreSQL a column without a time zone is in that of whoever wrote it; a second one knows.
    return moment(row.get(f"{name}Z") or row[name])


def moment(value: Any) -> datetime | None:
    """Return a time as it was written, in UTC where nothing else is said; None for none."""
    if not value:
        return None
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
