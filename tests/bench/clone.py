"""Fill a PostgreSQL database with copies of one conversation that was really led."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection, models

from agents.models import Turn
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Revision,
    Thread,
)

#: What a thread has once, and what it has more of the longer it is; those referred to first.
ONCE: tuple[type[models.Model], ...] = (Thread, MemoryRecord, Cursor)
MANY: tuple[type[models.Model], ...] = (Cycle, Observation, Line, Revision, Message, Turn)
OF_THREAD = {Thread: "id", MemoryRecord: "thread_id", Line: "observation_id"}

#: Columns that count along a thread, with the number of each in one block.
POSITIONS = ("position", "first_position", "last_position")
CURSORS = ("buffered_through", "observed_through")
SHOWN = ("since", "place")


@dataclass(frozen=True)
class Copies:
    """Ask for so many threads, each as many times as long as the one they are made of."""

    name: str
    threads: int
    blocks: int
    resources: int
    first_resource: int


def copy(template: Thread, wanted: Copies) -> None:
    """Make threads of a thread: its blocks come one after another, and the last is its memory."""
    size = template.last_position
    revisions = MemoryRecord.objects.get(thread=template).revision
    turns = Turn.objects.filter(thread=template).count()
    sizes = {"positions": size, "revisions": revisions, "turns": turns}
    with connection.cursor() as cursor:
        for model in (*ONCE, *MANY):
            cursor.execute(_statement(model, wanted, sizes), [template.pk.hex])


def _statement(model: type[models.Model], wanted: Copies, sizes: dict[str, int]) -> str:
    blocks = f"generate_series({wanted.blocks - 1 if model in ONCE else 0}, {wanted.blocks - 1})"
    columns, values = [], []
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField):
            continue
        columns.append(f'"{field.column}"')
        values.append(_value(model, field, wanted, sizes))
    return (
        f'INSERT INTO "{model._meta.db_table}" ({", ".join(columns)}) '
        f'SELECT {", ".join(values)} FROM "{model._meta.db_table}" s, '
        f"generate_series(1, {wanted.threads}) t, {blocks} b WHERE {_own(model)}"
    )


def _own(model: type[models.Model]) -> str:
    if model is Line:
        return "s.observation_id IN (SELECT id FROM memory_observation WHERE thread_id = %s::uuid)"
    if model is Revision:
        return "s.record_id IN (SELECT id FROM memory_memoryrecord WHERE thread_id = %s::uuid)"
    return f"s.{OF_THREAD.get(model, 'thread_id')} = %s::uuid"


def _value(
    model: type[models.Model], field: models.Field[Any, Any], wanted: Copies, sizes: dict[str, int]
) -> str:
    column, last = f's."{field.column}"', wanted.blocks - 1
    target = field.remote_field.model if field.remote_field else None
    if field.primary_key or (model is Turn and field.name == "key"):
        return _id(column, model, wanted)
    if target in (*ONCE, *MANY):
        return _id(column, target, wanted)
    if field.name == "resource":
        return f"{wanted.first_resource} + t %% {wanted.resources}"
    if field.name in (*POSITIONS, *CURSORS):
        return f"{column} + b * {sizes['positions']}"
    if field.name in SHOWN:
        # What waited to be shown at the end of a block was shown before the next.
        waited = f"CASE WHEN b < {last} THEN {sizes['revisions']} END"
        return f"COALESCE({column}, {waited}) + b * {sizes['revisions']}"
    if field.name == "revision" or (model is Revision and field.name == "number"):
        return f"{column} + b * {sizes['revisions']}"
    if model is Turn and field.name == "number":
        return f"{column} + b * {sizes['turns']}"
    if field.name == "until":
        # What the blocks before the last said is out of sight, as after a reflection.
        end = f"(b + 1) * {sizes['revisions']} + 1"
        moved = f"{column} + b * {sizes['revisions']}"
        return f"CASE WHEN b < {last} THEN COALESCE({moved}, {end}) ELSE {moved} END"
    return column


def _id(column: str, model: Any, wanted: Copies) -> str:
    place = "t" if model in ONCE else "t || '-' || b"
    return f"md5({column}::text || '{wanted.name}-' || {place})::uuid"
