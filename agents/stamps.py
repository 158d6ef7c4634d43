"""Read what moves when a page becomes stale, for all open threads in one statement.

Written by hand: each record and resource is looked at once, however many of the threads share
it, which subqueries for each thread would not do. Values are only compared. Of turns those that
run or wait are enough, and the newest number: each ends by leaving them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import MemoryRecord, Thread

Stamp = Mapping[str, Any]

_STAMPS = """
WITH shown AS (
  SELECT t.id, t.title, t.last_position, t.resource_id, t.parent_id, COALESCE(
    (SELECT id FROM memory_memoryrecord
     WHERE thread_id = t.id AND scope = 'thread' AND closed_at IS NULL),
    (SELECT id FROM memory_memoryrecord
     WHERE resource_id = t.resource_id AND scope = 'resource' AND closed_at IS NULL)) AS record_id
  FROM memory_thread t WHERE t.id IN ({ids})),
turns AS (
  SELECT thread_id,
    COUNT(CASE WHEN status = 'waiting' THEN 1 END) AS waiting,
    MAX(CASE WHEN status = 'running' THEN number END) AS running,
    MAX(started_at) AS started,
    MAX(CASE WHEN status = 'running' THEN LENGTH(draft_text) END) AS draft
  FROM agents_turn
  WHERE thread_id IN (SELECT id FROM shown) AND status IN ('running', 'waiting')
  GROUP BY thread_id),
cycles AS (
  SELECT record_id, MAX(started_at) AS started, MAX(finished_at) AS ended, COUNT(*) AS number
  FROM memory_cycle WHERE record_id IN (SELECT record_id FROM shown) GROUP BY record_id),
activity AS (
  SELECT resource_id, MAX(last_active_at) AS latest, COUNT(*) AS number
  FROM memory_thread WHERE NOT is_lab AND deleted_at IS NULL AND archived_at IS NULL
    AND resource_id IN (SELECT resource_id FROM shown)
  GROUP BY resource_id),
forks AS (
  SELECT s.id, COUNT(*) AS number
  FROM shown s JOIN memory_thread f ON f.parent_id = s.id OR f.parent_id = s.parent_id
  WHERE f.deleted_at IS NULL GROUP BY s.id)
SELECT s.id, s.title, s.last_position,
  (SELECT MAX(number) FROM agents_turn WHERE thread_id = s.id),
  u.waiting, u.running, u.started, u.draft,
  m.id, m.scope, m.revision, m.epoch, m.config,
  c.started, c.ended, c.number, a.latest, a.number, f.number, s.resource_id
FROM shown s
LEFT JOIN turns u ON u.thread_id = s.id
LEFT JOIN memory_memoryrecord m ON m.id = s.record_id
LEFT JOIN cycles c ON c.record_id = s.record_id
LEFT JOIN activity a ON a.resource_id = s.resource_id
LEFT JOIN forks f ON f.id = s.id
"""


def stamps(thread_ids: Collection[UUID]) -> dict[UUID, Stamp]:
    """Return what moves when a page of these threads becomes stale, in one statement."""
    if not thread_ids:
        return {}
    key = Thread._meta.pk
    ids = [key.get_db_prep_value(thread_id, connection) for thread_id in thread_ids]
    with connection.cursor() as cursor:
        cursor.execute(_STAMPS.format(ids=", ".join(["%s"] * len(ids))), ids)
        rows = cursor.fetchall()
    return {UUID(str(row[0])): _stamp(row) for row in rows}


def _stamp(row: tuple[Any, ...]) -> Stamp:
    activity = row[16:18]
    is_shared = row[9] == MemoryRecord.Scope.RESOURCE
    return {
        "title": row[1],
        "position": row[2],
        "turn": row[3:7],
        "draft": row[7],
        "revision": row[8:13],
        "cycle": row[13:16],
        "activity": activity,
        # What others say counts only where memory is shared with them.
        "beside": activity if is_shared else None,
        "forks": row[18],
        "resource": row[19],
    }
