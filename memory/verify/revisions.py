"""Check that revisions are complete and that each says what it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from memory.engine.size import Spanned, sizes
from memory.models import Observation, Revision

from .report import Violation
from .rows import COPIES, Memory, Row

SIZED_BY = ("text", "tokens", "said_at", "since", "until")
CAUSES = frozenset(Revision.Cause.values)
SHOWS = {
    Observation.Kind.OBSERVATION.value: COPIES | {"activate", "observe"},
    Observation.Kind.REFLECTION.value: COPIES | {"reflect"},
    Observation.Kind.NOTE.value: COPIES | {"note"},
}
SHOWN_KIND = {"activate": "observation", "observe": "observation", "reflect": "reflection"}
SUCCEEDS = COPIES | {"edit", "pin", "restore", "erase"}
PEOPLE = frozenset({"edit", "note", "pin", "forget", "restore", "clear", "erase", "scope"})
CLOSES = frozenset({"reflect", "edit", "pin", "forget", "restore", "clear", "erase"})


def check_revisions(memory: Memory) -> Iterator[Violation]:
    """Check the numbers, the causes and the token counts of a record's revisions."""
    yield from _numbers(memory)
    for row in memory.revisions:
        if row["cause"] not in CAUSES:
            sentence = f'Revision {row["number"]} has the unknown cause "{row["cause"]}".'
            yield Violation("revisions.cause", sentence, _named(memory, row))
    yield from _references(memory)
    yield from _observations_shown(memory)
    yield from _lines_changed(memory)
    yield from _epoch(memory)
    yield from _cleared(memory)
    yield from _empty_changes(memory)
    yield from _tokens(memory)


def _named(memory: Memory, row: Row) -> dict[str, object]:
    return {"record": memory.record["id"], "revision": row["number"]}


def _numbers(memory: Memory) -> Iterator[Violation]:
    record, latest = memory.record["id"], memory.record["revision"]
    counted = Counter(row["number"] for row in memory.revisions)
    for number in sorted(set(range(memory.begins_at, latest + 1)) - counted.keys()):
        sentence = f"Record {record} is at revision {latest}, and revision {number} is missing."
        rows = {"record": record, "revision": number}
        yield Violation("revisions.missing", sentence, rows)
    for number, times in sorted(counted.items()):
        rows = {"record": record, "revision": number}
        if times > 1:
            sentence = f"Record {record} has revision {number} {times} times."
            yield Violation("revisions.doubled", sentence, rows)
        if not memory.begins_at <= number <= latest:
            sentence = f"Record {record} is at revision {latest}, and has a revision {number}."
            yield Violation("revisions.beyond", sentence, rows)


def _references(memory: Memory) -> Iterator[Violation]:
    """Yield rows that name a revision which does not exist."""
    tables = (
        ("observation", ("since", "place"), memory.observations),
        ("line", ("since", "until"), memory.lines),
    )
    for table, fields, rows in tables:
        for row in rows.values():
            for field in fields:
                number = row[field]
                if field == "place" and memory.is_copy and (number or 0) <= memory.begins_at:
                    continue  # Copies keep the order they had where they come from.
                if number is not None and number not in memory.causes:
                    sentence = (
                        f"The {table} {row['id']} has {field} {number}, which is no revision."
                    )
                    named = {"record": memory.record["id"], table: row["id"], field: number}
                    yield Violation("revisions.reference", sentence, named)


def _observations_shown(memory: Memory) -> Iterator[Violation]:
    for row in memory.observations.values():
        cause = memory.causes.get(row["since"])
        if cause is not None and cause not in SHOWS.get(row["kind"], ()):
            sentence = (
                f"The {row['kind']} {row['id']} was shown at revision {row['since']}, "
                f'whose cause is "{cause}".'
            )
            rows = {"observation": row["id"], "revision": row["since"]}
            yield Violation("revisions.matching", sentence, rows)


def _lines_changed(memory: Memory) -> Iterator[Violation]:
    for row in memory.lines.values():
        began, ended = memory.causes.get(row["since"]), memory.causes.get(row["until"])
        rows = {"line": row["id"]}
        if row["replaces_id"] is not None and began is not None and began not in SUCCEEDS:
            sentence = (
                f"Line {row['id']} took another's place at revision {row['since']}, "
                f'whose cause is "{began}".'
            )
            yield Violation("revisions.matching", sentence, {**rows, "revision": row["since"]})
        if ended is not None and ended not in CLOSES:
            sentence = (
                f'Line {row["id"]} was closed at revision {row["until"]}, whose cause is "{ended}".'
            )
            yield Violation("revisions.matching", sentence, {**rows, "revision": row["until"]})


def _epoch(memory: Memory) -> Iterator[Violation]:
    """Check that each change by people raised the epoch, so that nobody's work undid it."""
    made = [n for n, cause in memory.causes.items() if cause in PEOPLE]
    raising = len(made) - (memory.is_copy and min(memory.causes) in made)
    if memory.record["epoch"] < raising:
        sentence = (
            f"Record {memory.record['id']} is of epoch {memory.record['epoch']}, "
            f"and people changed it {raising} times."
        )
        yield Violation("record.epoch", sentence, {"record": memory.record["id"]})


def _cleared(memory: Memory) -> Iterator[Violation]:
    """Check that nothing shown before a clear is still visible after it."""
    for revision in memory.revisions:
        if revision["cause"] != "clear" or _of_nobody(memory, revision):
            continue
        number, thread = revision["number"], revision["thread_id"]
        for line in memory.lines.values():
            owner = memory.observations[line["observation_id"]]
            if thread not in (None, memory.record["thread_id"], owner["thread_id"]):
                continue  # One thread of several was cleared, and this is not of it.
            if line["since"] and line["since"] < number < (line["until"] or number + 1):
                sentence = f"Revision {number} cleared memory, and line {line['id']} is visible."
                rows = {**_named(memory, revision), "line": line["id"]}
                yield Violation("lines.cleared", sentence, rows)


def _of_nobody(memory: Memory, revision: Row) -> bool:
    """Tell whether what was cleared may be one thread of several, which is erased since."""
    unknown = revision["thread_id"] is None and memory.record["thread_id"] is None
    return unknown and revision["number"] < memory.erased_through


def _empty_changes(memory: Memory) -> Iterator[Violation]:
    shown = {(row["since"], row["kind"]) for row in memory.observations.values()}
    for row in memory.revisions:
        kind = SHOWN_KIND.get(row["cause"])
        if row["number"] <= memory.erased_through:
            continue
        if kind is not None and (row["number"], kind) not in shown:
            sentence = f'Revision {row["number"]} says "{row["cause"]}", and no {kind} was shown.'
            yield Violation("revisions.empty", sentence, _named(memory, row))


def _tokens(memory: Memory) -> Iterator[Violation]:
    visible = _visible_tokens(memory)
    for row in memory.revisions:
        number = row["number"]
        if number <= memory.erased_through:
            continue  # It counted what was destroyed since.
        for field, wanted in (
            ("tokens_before", visible.get(number - 1, 0)),
            ("tokens_after", visible.get(number, 0)),
        ):
            if row[field] != wanted:
                sentence = (
                    f"Revision {number} says {field} {row[field]}; its visible lines have {wanted}."
                )
                yield Violation("revisions.tokens", sentence, _named(memory, row))


def _visible_tokens(memory: Memory) -> dict[int, int]:
    """Return the tokens of the lines visible at each revision, with the headers of days."""
    lines = sorted(memory.lines.values(), key=lambda line: _place(memory, line))
    spans = [Spanned(*(line[field] for field in SIZED_BY)) for line in lines]
    return sizes(spans, range(memory.begins_at, memory.record["revision"] + 1), memory.zone)


def _place(memory: Memory, line: Row) -> tuple[Any, ...]:
    owner, nobody = memory.observations[line["observation_id"]], UUID(int=0)
    first = -1 if owner["first_position"] is None else owner["first_position"]
    thread = owner["thread_id"] or nobody
    return (owner["place"] or 0, thread, first, owner["id"], line["ordinal"])
