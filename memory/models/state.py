"""Read a thread with all that must be read as of one revision, in one statement.

A statement sees one state of the database, so the revision and the cursor it returns belong
together. Written by hand, since it is sent at every step of every turn and the ORM would
need four statements and more time to compose them than the database to answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db import connection

from .cycle import REFLECTOR_LANE, observer_lane
from .record import MemoryRecord
from .swift import columns, converter, now_in_sql, read_row, width
from .thread import Resource, Thread

_OF_THREAD = "o.record_id = m.id AND o.thread_id = t.id"
_RANGES = f"{_OF_THREAD} AND o.kind = 'observation'"
_SHOWN = f"{_OF_THREAD} AND o.since <= m.revision"

_STATE = """
SELECT {columns}, {agent}, c.buffered_through,
  (SELECT MAX(o.last_position) FROM memory_observation o WHERE {ranges}),
  (SELECT MAX(o.last_position) FROM memory_observation o
   WHERE {ranges} AND o.since <= m.revision),
  (SELECT o.current_task FROM memory_observation o WHERE {shown} AND o.current_task <> ''
   ORDER BY o.last_position DESC LIMIT 1),
  (SELECT o.suggested_response FROM memory_observation o WHERE {shown}
   AND o.suggested_response <> '' ORDER BY o.last_position DESC LIMIT 1),
  (SELECT o.extracted FROM memory_observation o WHERE {shown} AND o.kind = 'observation'
   ORDER BY o.last_position DESC LIMIT 1),
  w.tokens, w.message_tokens, w.id {lane_columns}
FROM memory_thread t
JOIN memory_resource r ON r.id = t.resource_id
LEFT JOIN memory_memoryrecord m ON m.id = COALESCE(
  (SELECT id FROM memory_memoryrecord
   WHERE thread_id = t.id AND scope = 'thread' AND closed_at IS NULL),
  (SELECT id FROM memory_memoryrecord
   WHERE resource_id = t.resource_id AND scope = 'resource' AND closed_at IS NULL))
LEFT JOIN memory_cursor c ON c.record_id = m.id AND c.thread_id = t.id
LEFT JOIN memory_observation w ON w.id = (
  SELECT id FROM memory_observation WHERE record_id = m.id AND kind = 'reflection'
  AND since IS NULL AND discarded_at IS NULL LIMIT 1)
{lane_joins}
WHERE t.id = %s
"""

_LANE_COLUMNS = """,
  {alias}.status = 'running', {alias}.lease_expires_at < {now}, {alias}.status = 'failed',
  {alias}.status = 'cancelled',
  {alias}.next_attempt_at IS NULL, {alias}.next_attempt_at > {now}, {alias}.attempt,
  {alias}.observation_tokens"""

_LANE_JOIN = """
LEFT JOIN memory_cycle {alias} ON {alias}.id = (
  SELECT id FROM memory_cycle WHERE record_id = m.id AND lane = %s
  ORDER BY started_at DESC, id DESC LIMIT 1)"""

_TAILS = f"""
SELECT revision, id, title, last_position, cursor, written, observed FROM (
  SELECT m.revision AS revision, t.id AS id, t.title AS title,
    t.last_position AS last_position, t.last_active_at AS last_active_at,
    COALESCE(c.buffered_through, 0) AS cursor,
    COALESCE((SELECT MAX(o.last_position) FROM memory_observation o WHERE {_RANGES}), 0)
      AS written,
    COALESCE((SELECT MAX(o.last_position) FROM memory_observation o
      WHERE {_RANGES} AND o.since <= m.revision), 0) AS observed
  FROM memory_memoryrecord m
  LEFT JOIN memory_thread t ON t.resource_id = m.resource_id AND t.remembers
    AND t.deleted_at IS NULL AND t.id <> %s
    AND NOT EXISTS (
      SELECT 1 FROM memory_memoryrecord own
      WHERE own.thread_id = t.id AND own.scope = 'thread' AND own.closed_at IS NULL)
  LEFT JOIN memory_cursor c ON c.record_id = m.id AND c.thread_id = t.id
  WHERE m.id = %s) tails
WHERE id IS NULL OR last_position > observed
ORDER BY last_active_at DESC
"""


@dataclass(frozen=True, slots=True)
class LaneRow:
    """Hold what the latest cycle of a lane says; all of it is false or 0 when there is none."""

    running: bool = False
    lapsed: bool = False
    failed: bool = False
    cancelled: bool = False
    final: bool = False
    resting: bool = False
    attempt: int = 0
    observation_tokens: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """Hold a thread, its resource and record, and how far it is observed, as of one revision.

    ``record`` is None when there is none yet. ``observed_through`` is what observations shown
    cover, ``written_through`` those that wait too, and ``buffered_through`` what the cursor
    says, which serves writing alone. ``reflection`` are the tokens of the reflection
    that waits and of its sources, ``waiting_reflection`` its key. Lanes are only read when
    asked for.
    """

    thread: Thread
    record: MemoryRecord | None
    of_agent: str
    actor_model: str
    observed_through: int
    written_through: int
    buffered_through: int
    current_task: str
    suggested_response: str
    extracted: str
    reflection: tuple[int, int] | None
    waiting_reflection: UUID | None
    observer: LaneRow = LaneRow()
    reflector: LaneRow = LaneRow()


@dataclass(frozen=True, slots=True)
class OtherTail:
    """Name a thread with messages that its shared record has not observed."""

    thread: UUID
    title: str
    last_position: int
    buffered_through: int
    written_through: int
    observed_through: int


def read_state(thread_id: UUID, *, lanes: bool = False) -> State:
    """Return the state of a thread. Raises Thread.DoesNotExist."""
    named = [observer_lane(thread_id), REFLECTOR_LANE] if lanes else []
    with connection.cursor() as cursor:
        cursor.execute(
            _sql(connection.vendor, lanes, settings.MEMORY_AGENT_MODEL), [*named, _id(thread_id)]
        )
        row = cursor.fetchone()
    if row is None:
        raise Thread.DoesNotExist(f"There is no thread {thread_id}.")
    return _state(list(row), lanes)


def other_tails(record: MemoryRecord, thread_id: UUID) -> list[OtherTail] | None:
    """Return the other threads of a shared record that have raw messages, newest first.

    None when the record has moved on since it was read: then all must be read again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAILS, [_id(thread_id), _id(record.pk)])
        rows = cursor.fetchall()
    if any(row[0] != record.revision for row in rows):
        return None  # A record that shows nothing raw has no row, and nothing to disagree on.
    read = converter(Thread._meta.get_field("id"))
    return [OtherTail(read(row[1]), *row[2:]) for row in rows if row[1] is not None]


def _state(row: list[Any], lanes: bool) -> State:
    resource = read_row(Resource, row, at=width(Thread))
    thread = read_row(Thread, row)
    thread.resource = resource
    at = width(Thread) + width(Resource)
    record = None if row[at] is None else read_row(MemoryRecord, row, at=at)
    at += width(MemoryRecord)
    options, model, cursor, written, observed, task, suggestion, extracted, *rest = row[at:]
    tokens, sources, waiting, *lane = rest
    half = len(lane) // 2
    return State(
        thread=thread,
        record=record,
        of_agent=_json(options),
        actor_model=model or settings.ACTOR_MODEL,
        observed_through=observed or 0,
        written_through=written or 0,
        buffered_through=cursor or 0,
        current_task=task or "",
        suggested_response=suggestion or "",
        extracted=_json(extracted),
        reflection=None if tokens is None else (tokens, sources),
        waiting_reflection=None if waiting is None else _key(waiting),
        observer=_lane(lane[:half]) if lanes else LaneRow(),
        reflector=_lane(lane[half:]) if lanes else LaneRow(),
    )


def _key(value: Any) -> UUID:
    key: UUID = converter(Thread._meta.get_field("id"))(value)
    return key


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value or {})


def _lane(row: Sequence[Any]) -> LaneRow:
    *said, attempt, tokens = row
    if attempt is None:
        return LaneRow()
    running, lapsed, failed, cancelled, final, resting = map(bool, said)
    return LaneRow(running, lapsed, failed, cancelled, final, resting, attempt, tokens)


@lru_cache
def _sql(vendor: str, lanes: bool, agents: str) -> str:
    now = now_in_sql()
    aliases = ("co", "cr") if lanes else ()
    sql = _STATE.format(
        columns=", ".join(
            columns(model, alias)
            for alias, model in (("t", Thread), ("r", Resource), ("m", MemoryRecord))
        ),
        agent=_agent(agents),
        shown=_SHOWN,
        ranges=_RANGES,
        lane_columns="".join(_LANE_COLUMNS.format(alias=a, now=now) for a in aliases),
        lane_joins="".join(_LANE_JOIN.format(alias=a) for a in aliases),
    )
    return sql.strip()


def _agent(label: str) -> str:
    """Select options and model of the thread's agent from the table settings name, if any."""
    if not label:
        return "NULL, NULL"
    table = apps.get_model(label)._meta.db_table
    found = f"FROM {table} WHERE slug = t.agent"
    return f"(SELECT memory_options {found}), (SELECT model {found})"


def _id(pk: UUID) -> Any:
    return Thread._meta.pk.get_db_prep_value(pk, connection)
