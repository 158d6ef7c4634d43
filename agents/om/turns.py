"""Check the turns of conversations, which memory knows nothing of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef

from memory.models import Message
from memory.verify import Violation

from ..models import Turn

RUNNING, WAITING = Turn.Status.RUNNING.value, Turn.Status.WAITING.value
UNSTARTED = frozenset({WAITING, Turn.Status.WITHDRAWN.value})
Row = Mapping[str, Any]


def running_turns() -> dict[UUID, int]:
    """Return where the running turn of each thread begins."""
    rows = Turn.objects.filter(status=RUNNING).values_list("thread_id", "first_position")
    return {thread: first for thread, first in rows if first is not None}


def stored_turns(thread: UUID | None = None) -> list[Row]:
    """Return the rows of all turns, or of one thread's, with what is stored around each."""
    turns = Turn.objects.all() if thread is None else Turn.objects.filter(thread=thread)
    first = Message.objects.filter(thread=OuterRef("thread"), position=OuterRef("first_position"))
    around = {"thread_last": F("thread__last_position"), "begins": Exists(first)}
    return list(turns.order_by("thread_id", "number").annotate(**around).values())


def check_turns(rows: Iterable[Row]) -> Iterator[Violation]:
    """Check each turn by itself, and that those of a thread come one after another."""
    by_thread: dict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        by_thread[row["thread_id"]].append(row)
        yield from _itself(row)
    for thread, turns in by_thread.items():
        yield from _together(thread, turns)


def _violation(invariant: str, row: Row, what: str) -> Violation:
    sentence = f"Turn {row['number']} of thread {row['thread_id']} {what}."
    return Violation(invariant, sentence, {"turn": row["id"], "thread": row["thread_id"]})


def _itself(row: Row) -> Iterator[Violation]:
    status = row["status"]
    if status not in Turn.Status.values:
        yield _violation("turns.status", row, f'has the unknown status "{status}"')
    if status == RUNNING and (row["lease_token"] is None or row["lease_expires_at"] is None):
        yield _violation("turns.lease", row, "is running without a lease")
    if (row["finished_at"] is None) != (status in (RUNNING, WAITING)):
        when = "has no time it finished at" if row["finished_at"] is None else "has finished"
        yield _violation("turns.finished", row, f"is {status} and {when}")
    first, last = row["first_position"], row["last_position"]
    if status in UNSTARTED:
        if first is not None:
            yield _violation("turns.range", row, f"is {status} and begins at {first}")
    elif first is None or first < 1:
        yield _violation("turns.range", row, f"is {status} and begins at {first}")
    elif row["prompt"] and not row["begins"]:
        yield _violation("turns.range", row, f"begins at {first}, where no message is")
    elif last is not None and last > row["thread_last"]:
        what = f"ends at {last}, beyond the last position {row['thread_last']}"
        yield _violation("turns.range", row, what)


def _together(thread: UUID, turns: list[Row]) -> Iterator[Violation]:
    running = [row["id"] for row in turns if row["status"] == RUNNING]
    if len(running) > 1:
        sentence = f"{len(running)} turns of thread {thread} are running, at most 1 may."
        yield Violation("turns.running", sentence, {"thread": thread, "turns": running})
    for number, times in Counter(row["number"] for row in turns).items():
        if times > 1:
            sentence = f"Thread {thread} has {times} turns with the number {number}."
            yield Violation("turns.number", sentence, {"thread": thread, "number": number})
    yield from _overlaps(turns)


def _overlaps(turns: list[Row]) -> Iterator[Violation]:
    begun = [row for row in turns if row["first_position"] is not None]
    begun.sort(key=lambda row: (row["first_position"], row["number"]))
    through = 0
    for row in begun:
        if row["first_position"] <= through:
            what = f"begins at {row['first_position']}, inside the turn before it"
            yield _violation("turns.overlap", row, what)
        through = max(through, row["last_position"] or 0)
