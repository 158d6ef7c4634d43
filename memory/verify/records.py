"""Check whose memory is whose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from memory.models import Cursor, Cycle, MemoryRecord, Observation, Revision

from .report import Violation
from .rows import Memory, Row, stored

THREAD, RESOURCE = MemoryRecord.Scope.THREAD.value, MemoryRecord.Scope.RESOURCE.value


def check_record(memory: Memory) -> Iterator[Violation]:
    """Check that a record's rows belong to its scope."""
    record = memory.record
    rows = {"record": record["id"]}
    fits = {THREAD: record["thread_id"] is not None, RESOURCE: record["thread_id"] is None}
    if not fits.get(record["scope"], False):
        sentence = (
            f'Record {record["id"]} has scope "{record["scope"]}" and thread {record["thread_id"]}.'
        )
        yield Violation("record.scope", sentence, rows)
    for thread in memory.threads.values():
        if thread["resource_id"] != record["resource_id"]:
            sentence = f"Record {record['id']} remembers thread {thread['id']} of another resource."
            yield Violation("record.scope", sentence, {**rows, "thread": thread["id"]})
    if record["scope"] == THREAD:
        yield from _other_threads(memory)


def _other_threads(memory: Memory) -> Iterator[Violation]:
    own = memory.record["thread_id"]
    tables = (
        ("observation", memory.observations.values()),
        ("cursor", memory.cursors),
        ("cycle", memory.cycles.values()),
    )
    for table, row in chain.from_iterable(((t, row) for row in rows) for t, rows in tables):
        if row["thread_id"] not in (None, own):
            sentence = (
                f"The {table} {row['id']} is about thread {row['thread_id']}, "
                f"and its record {memory.record['id']} about {own}."
            )
            rows = {"record": memory.record["id"], table: row["id"]}
            yield Violation("record.scope", sentence, rows)


def check_open(records: list[Row]) -> Iterator[Violation]:
    """Check that each scope has at most one open record."""
    seen: dict[tuple[str, object], object] = {}
    for record in records:
        if record["closed_at"] is not None:
            continue
        owner = record["thread_id"] if record["scope"] == THREAD else record["resource_id"]
        key = (record["scope"], owner)
        if key in seen:
            sentence = f"The {record['scope']} {owner} has more than one open record."
            yield Violation("record.open", sentence, {"records": [seen[key], record["id"]]})
        seen[key] = record["id"]


def check_forgetful(thread: Row) -> Iterator[Violation]:
    """Check that nothing is remembered of a thread that never remembered.

    Where somebody turned memory off, what was remembered until then stays.
    """
    if thread["remembers"] or _was_turned_off(thread["id"]):
        return
    for model in (MemoryRecord, Observation, Cursor, Cycle):
        if stored(model, thread=thread["id"]):
            name = model._meta.verbose_name
            sentence = f"Thread {thread['id']} does not remember, and a {name} is stored for it."
            yield Violation("record.remembers", sentence, {"thread": thread["id"]})


def _was_turned_off(thread_id: Any) -> bool:
    switched = Revision.objects.filter(thread=thread_id, cause="config")
    return any("remembers" in options for options in switched.values_list("options", flat=True))
