"""See in a moment whether much happened in whole resources, or in all.

Written by hand: every part is the end of an index or the few rows of a partial one, so that it
costs the same however much was ever said. What is not seen here, such as a new name, is found by
the count of everything, which is made less often the longer it takes. Values are only compared.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connection

_EVERYTHING = """
SELECT
  (SELECT MAX(last_active_at) FROM memory_thread),
  (SELECT id FROM memory_revision ORDER BY id DESC LIMIT 1),
  (SELECT id FROM memory_cycle ORDER BY id DESC LIMIT 1),
  (SELECT id FROM agents_turn ORDER BY id DESC LIMIT 1),
  (SELECT COUNT(*) FROM agents_turn WHERE status = 'waiting'),
  (SELECT COUNT(*) FROM agents_turn WHERE status = 'running'),
  (SELECT MAX(started_at) FROM agents_turn WHERE status = 'running'),
  (SELECT COUNT(*) FROM memory_cycle WHERE status = 'running'),
  (SELECT MAX(started_at) FROM memory_cycle WHERE status = 'running')
"""

_RESOURCES = """
WITH
turns AS (
  SELECT h.resource_id, COUNT(*) AS number, MAX(u.started_at) AS latest
  FROM agents_turn u JOIN memory_thread h ON h.id = u.thread_id
  WHERE u.status = 'running' GROUP BY h.resource_id),
waits AS (
  SELECT h.resource_id, COUNT(*) AS number
  FROM agents_turn u JOIN memory_thread h ON h.id = u.thread_id
  WHERE u.status = 'waiting' GROUP BY h.resource_id),
cycles AS (
  SELECT m.resource_id, COUNT(*) AS number, MAX(c.started_at) AS latest
  FROM memory_cycle c JOIN memory_memoryrecord m ON m.id = c.record_id
  WHERE c.status = 'running' GROUP BY m.resource_id)
SELECT r.id,
  (SELECT MAX(last_active_at) FROM memory_thread WHERE resource_id = r.id),
  (SELECT SUM(revision) FROM memory_memoryrecord WHERE resource_id = r.id),
  t.number, t.latest, w.number, c.number, c.latest
FROM memory_resource r
LEFT JOIN turns t ON t.resource_id = r.id
LEFT JOIN waits w ON w.resource_id = r.id
LEFT JOIN cycles c ON c.resource_id = r.id
WHERE r.id IN ({ids})
"""


def of_everything() -> Any:
    """Return what differs once anything was said, answered, observed or changed anywhere."""
    with connection.cursor() as cursor:
        cursor.execute(_EVERYTHING)
        return cursor.fetchone()


def of_resources(keys: Collection[int]) -> dict[int, Any]:
    """Return for each resource what differs once anything happened in it, in one statement."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_RESOURCES.format(ids=", ".join(["%s"] * len(keys))), list(keys))
        return {row[0]: row[1:] for row in cursor.fetchall()}
