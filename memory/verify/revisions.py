"""Check that revisions are complete and that each says what it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memory.models import Observation, Revision

from .report import Violation
from .rows import Memory, Row

CAUSES = frozenset(Revision.Cause.values)
COPIES = frozenset({"import", "fork", "scope"})
SHOWS = {
    Observation.Kind.OBSERVATION.value: COPIES | {"activate", "observe"},
    Observation.Kind.REFLECTION.value: COPIES | {"reflect"},
    Observation.Kind.NOTE.value: COPIES | {"note"},
}
SHOWN_KIND = {"activate": "observation", "observe": "observation", "reflect": "reflection"}
SUCCEEDS = COPIES | {"edit", "pin", "restore"}
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
    if not memory.erased:
        yield from _empty_changes(memory)
        yield from _tokens(memory)


def _named(memory: Memory, row: Row) -> dict[str, object]:
    return {"record": memory.record["id"], "revision": row["number"]}


def _numbers(memory: Memory) -> Iterator[Violation]:
    record, latest = memory.record["id"], memory.record["revision"]
    counted = Counter(row["number"] for row in memory.revisions)
    for number in sorted(set(range(1, latest + 1)) - counted.keys()):
        sentence = f"Record {record} is at revision {latest}, and revision {number} is missing."
        rows = {"record": record, "revision": number}
        yield Violation("revisions.missing", sentence, rows)
    for number, times in sorted(counted.items()):
        rows = {"record": record, "revision": number}
        if times > 1:
            sentence = f"Record {record} has revision {number} {times} times."
            yield Violation("revisions.doubled", sentence, rows)
        if not 1 <= number <= latest:
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


def _empty_changes(memory: Memory) -> Iterator[Violation]:
    shown = {(row["since"], row["kind"]) for row in memory.observations.values()}
    for row in memory.revisions:
        kind = SHOWN_KIND.get(row["cause"])
        if kind is not None and (row["number"], kind) not in shown:
            sentence = f'Revision {row["number"]} says "{row["cause"]}", and no {kind} was shown.'
            yield Violation("revisions.empty", sentence, _named(memory, row))


def _tokens(memory: Memory) -> Iterator[Violation]:
    visible = _visible_tokens(memory)
    for row in memory.revisions:
        number = row["number"]
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
    """Return the tokens of the lines visible at each revision."""
    changes: Counter[int] = Counter()
    for row in memory.lines.values():
        if row["since"] is not None:
            changes[row["since"]] += row["tokens"]
            if row["until"] is not None:
                changes[row["until"]] -= row["tokens"]
    tokens, totals = 0, {}
    for number in range(1, memory.record["revision"] + 1):
        tokens += changes[number]
        totals[number] = tokens
    return totals
