"""Check rows that were given up, and notes: neither covers a message."""

from __future__ import annotations

from collections.abc import Iterator

from memory.models import Observation

from .report import Violation
from .rows import Memory, Row

KINDS = frozenset(Observation.Kind.values)
DISCARDED, NOTE = Observation.Kind.DISCARDED.value, Observation.Kind.NOTE.value


def check_rows(memory: Memory) -> Iterator[Violation]:
    """Check the kind of each row, and that what was discarded was never shown."""
    for row in memory.observations.values():
        yield from _itself(memory, row)


def _itself(memory: Memory, row: Row) -> Iterator[Violation]:
    if row["kind"] not in KINDS:
        yield _violation("rows.kind", row, f'is of the unknown kind "{row["kind"]}"')
    if row["kind"] == NOTE and row["first_position"] is not None:
        yield _violation("rows.note", row, "covers messages, which no note may")
    if row["discarded_at"] is None and row["kind"] != DISCARDED:
        return
    if row["discarded_at"] is None:
        yield _violation("rows.discarded", row, "has no time it was discarded at")
    if row["since"] is not None:
        what = f"was discarded, and is shown since revision {row['since']}"
        yield _violation("rows.discarded", row, what)


def _violation(invariant: str, row: Row, what: str) -> Violation:
    sentence = f"The {row['kind']} {row['id']} {what}."
    return Violation(invariant, sentence, {"observation": row["id"]})
