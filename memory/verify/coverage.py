"""Check that covered and raw messages together are the thread, at every revision."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise
from uuid import UUID

from .messages import Scan
from .report import Violation
from .rows import Memory, Row


def check_coverage(memory: Memory, scan: Scan) -> Iterator[Violation]:
    """Check the ranges, the cursor and the read rule of one thread in one record."""
    thread_id: UUID = scan.thread["id"]
    ranges = memory.ranges_of.get(thread_id, [])
    yield from _each_range(memory, scan, ranges)
    yield from _neighbours(scan, ranges)
    yield from _order_of_activation(thread_id, ranges)
    yield from _cursor(memory, scan, ranges)
    yield from _read_rule(memory, scan, ranges)


def _each_range(memory: Memory, scan: Scan, ranges: list[Row]) -> Iterator[Violation]:
    for row in ranges:
        first, last = row["first_position"], row["last_position"]
        rows = {"thread": scan.thread["id"], "observation": row["id"]}
        if first < 1 or last < first:
            sentence = f"Observation {row['id']} covers {first}–{last}, which is no range."
            yield Violation("coverage.range", sentence, rows)
        if last > scan.thread["last_position"]:
            sentence = (
                f"Observation {row['id']} covers up to {last}, beyond the last position "
                f"{scan.thread['last_position']} of thread {scan.thread['id']}."
            )
            yield Violation("coverage.range", sentence, rows)
        tokens = sum(scan.tokens[_slice(scan.positions, first, last)])
        if tokens != row["message_tokens"]:
            sentence = (
                f"Observation {row['id']} covers messages of {tokens} tokens, "
                f"and {row['message_tokens']} are stored."
            )
            yield Violation("coverage.tokens", sentence, rows)


def _neighbours(scan: Scan, ranges: list[Row]) -> Iterator[Violation]:
    thread_id = scan.thread["id"]
    for before, row in pairwise(ranges):
        if row["first_position"] <= before["last_position"]:
            sentence = (
                f"Observations {before['id']} and {row['id']} both cover "
                f"message {row['first_position']} of thread {thread_id}."
            )
            rows = {"thread": thread_id, "observations": [before["id"], row["id"]]}
            yield Violation("coverage.overlap", sentence, rows)
    through = 0
    for row in ranges:
        between = scan.positions[_slice(scan.positions, through + 1, row["first_position"] - 1)]
        if between:
            sentence = (
                f"Messages {_listed(between)} of thread {thread_id} lie before "
                f"observation {row['id']} and no observation covers them."
            )
            rows = {"thread": thread_id, "observation": row["id"], "messages": between}
            yield Violation("coverage.gap", sentence, rows)
        through = max(through, row["last_position"])


def _order_of_activation(thread_id: UUID, ranges: list[Row]) -> Iterator[Violation]:
    for before, row in pairwise(ranges):
        if row["since"] is None:
            continue
        if before["since"] is None or before["since"] > row["since"]:
            state = "still buffered" if before["since"] is None else f"shown at {before['since']}"
            sentence = (
                f"Observation {row['id']} of thread {thread_id} is shown at revision "
                f"{row['since']}, while {before['id']} before it is {state}."
            )
            rows = {"thread": thread_id, "observations": [before["id"], row["id"]]}
            yield Violation("coverage.order", sentence, rows)


def _cursor(memory: Memory, scan: Scan, ranges: list[Row]) -> Iterator[Violation]:
    thread_id = scan.thread["id"]
    found = [row for row in memory.cursors if row["thread_id"] == thread_id]
    buffered = max((row["last_position"] for row in ranges), default=0)
    observed = max((row["last_position"] for row in ranges if row["since"]), default=0)
    rows = {"record": memory.record["id"], "thread": thread_id}
    if not found and ranges:
        yield Violation("cursor.missing", f"Thread {thread_id} has observations, no cursor.", rows)
    for cursor in found:
        stored = (cursor["buffered_through"], cursor["observed_through"])
        if stored != (buffered, observed):
            sentence = (
                f"The cursor of thread {thread_id} says buffered through {stored[0]} and "
                f"observed through {stored[1]}; its observations say {buffered} and {observed}."
            )
            yield Violation("cursor.place", sentence, rows)
        if stored[1] > stored[0] or stored[0] > scan.thread["last_position"]:
            sentence = (
                f"The cursor of thread {thread_id} says observed {stored[1]}, buffered "
                f"{stored[0]}, last position {scan.thread['last_position']}: not in that order."
            )
            yield Violation("cursor.order", sentence, rows)


def _read_rule(memory: Memory, scan: Scan, ranges: list[Row]) -> Iterator[Violation]:
    """Recompute, at each revision that shows a range, what is covered and what is raw."""
    shown = sorted((r for r in ranges if r["since"] is not None), key=lambda r: r["since"])
    covered: Counter[int] = Counter()
    through = 0
    for number, rows in groupby(shown, key=lambda row: row["since"]):
        taken = list(rows)
        for row in taken:
            inside = _slice(scan.positions, row["first_position"], row["last_position"])
            covered.update(scan.positions[inside])
        before, through = through, max(through, *(row["last_position"] for row in taken))
        # Raw is what lies above `through`, so each message up to there is covered once.
        settled = scan.positions[_slice(scan.positions, before + 1, through)]
        absent = [position for position in settled if not covered[position]]
        doubled = sorted({p for row in taken for p in _inside(scan, row) if covered[p] > 1})
        yield from _not_once(memory, scan, number, absent, "neither covered nor raw")
        yield from _not_once(memory, scan, number, doubled, "covered more than once")


def _not_once(
    memory: Memory, scan: Scan, number: int, positions: list[int], what: str
) -> Iterator[Violation]:
    if positions:
        thread_id = scan.thread["id"]
        sentence = (
            f"At revision {number}, messages {_listed(positions)} of thread {thread_id} are {what}."
        )
        rows = {
            "record": memory.record["id"],
            "thread": thread_id,
            "revision": number,
            "messages": positions,
        }
        yield Violation("coverage.reading", sentence, rows)


def _inside(scan: Scan, row: Row) -> list[int]:
    return scan.positions[_slice(scan.positions, row["first_position"], row["last_position"])]


def _slice(positions: list[int], first: int, last: int) -> slice:
    return slice(bisect_left(positions, first), bisect_right(positions, last))


def _listed(positions: list[int]) -> str:
    named = ", ".join(map(str, positions[:10]))
    return named if len(positions) <= 10 else f"{named} and {len(positions) - 10} more"
