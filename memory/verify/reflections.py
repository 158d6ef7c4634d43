"""Check that reflections stand for rows that were shown before them."""

from __future__ import annotations

from collections.abc import Iterator

from memory.models import Observation

from .report import Violation
from .rows import Memory, Row


def check_reflections(memory: Memory) -> Iterator[Violation]:
    """Check the reflections of a record, and that the record counts them."""
    reflections = memory.of_kind(Observation.Kind.REFLECTION)
    for row in reflections:
        yield from _itself(memory, row)
        for source in memory.sources_of.get(row["id"], []):
            yield from _source(memory, row, memory.observations.get(source), source)
        yield from _place(memory, row)
    yield from _sources_of_others(memory)
    yield from _counts(memory, reflections)


def _violation(invariant: str, row: Row, what: str, **rows: object) -> Violation:
    return Violation(
        invariant, f"Reflection {row['id']} {what}.", {"reflection": row["id"], **rows}
    )


def _itself(memory: Memory, row: Row) -> Iterator[Violation]:
    if row["first_position"] is not None or row["last_position"] is not None:
        yield _violation("reflections.range", row, "covers messages, which is not its to do")
    if not memory.sources_of.get(row["id"]) and not _erased(memory, row):
        yield _violation("reflections.sources", row, "has no source")
    if _emptied(memory, row):
        return
    if row["discarded_at"] is None and not memory.lines_of.get(row["id"]):
        yield _violation("reflections.empty", row, "has no line to stand for its sources")


def _emptied(memory: Memory, row: Row) -> bool:
    """Tell whether a reflection may be without lines: erased, or copied for what it joins."""
    return _erased(memory, row) or memory.copied(row)


def _erased(memory: Memory, row: Row) -> bool:
    """Tell whether text was erased since a reflection was shown, and maybe rows it came from."""
    if row["since"] is None:
        return row["discarded_at"] is not None and memory.erased_through > 0
    return bool(row["since"] < memory.erased_through)


def _source(memory: Memory, row: Row, source: Row | None, source_id: object) -> Iterator[Violation]:
    if source is None:
        what = f"has the source {source_id} of another record"
        yield _violation("reflections.sources", row, what, source=source_id)
    elif source["since"] is None:
        what = f"has the source {source_id}, which is not shown"
        yield _violation("reflections.sources", row, what, source=source_id)
    elif row["since"] is not None and _shown_after(memory, source, row):
        what = (
            f"is shown at revision {row['since']}, and its source {source_id} "
            f"only at {source['since']}"
        )
        yield _violation("reflections.sources", row, what, source=source_id)


def _shown_after(memory: Memory, source: Row, row: Row) -> bool:
    # Copies of a reflection and of its sources are shown together.
    together = memory.copied(row) and source["since"] == row["since"]
    return bool(source["since"] >= row["since"]) and not together


def _place(memory: Memory, row: Row) -> Iterator[Violation]:
    found = [memory.observations.get(pk) for pk in memory.sources_of.get(row["id"], [])]
    places = [source["place"] for source in found if source and source["place"] is not None]
    if row["since"] is not None and places and row["place"] != max(places):
        what = f"stands at place {row['place']}, and its last source at {max(places)}"
        yield _violation("reflections.place", row, what)


def _sources_of_others(memory: Memory) -> Iterator[Violation]:
    for pk in memory.sources_of:
        row = memory.observations[pk]
        if row["kind"] != Observation.Kind.REFLECTION.value:
            sentence = f"The {row['kind']} {pk} has sources, which only a reflection may."
            yield Violation("reflections.sources", sentence, {"observation": pk})


def _counts(memory: Memory, reflections: list[Row]) -> Iterator[Violation]:
    record = memory.record
    shown = sum(row["since"] is not None for row in reflections)
    if shown != record["generation"]:
        sentence = (
            f"Record {record['id']} is of generation {record['generation']} "
            f"and shows {shown} reflections."
        )
        yield Violation("record.generation", sentence, {"record": record["id"]})
    waiting = [r["id"] for r in reflections if r["since"] is None and r["discarded_at"] is None]
    if len(waiting) > 1:
        sentence = f"Record {record['id']} has {len(waiting)} reflections waiting, at most 1 may."
        rows = {"record": record["id"], "reflections": waiting}
        yield Violation("reflections.waiting", sentence, rows)
