"""Check that cycles lock their lanes and that only finished ones left rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from memory.models import Cycle, Observation

from .report import Violation
from .rows import Memory, Row

OBSERVING = frozenset({Cycle.Kind.BUFFER.value, Cycle.Kind.OBSERVE.value})
REFLECTING = frozenset({Cycle.Kind.BUFFER_REFLECTION.value, Cycle.Kind.REFLECT.value})
DONE, RUNNING = Cycle.Status.DONE.value, Cycle.Status.RUNNING.value
FAILED, CANCELLED = Cycle.Status.FAILED.value, Cycle.Status.CANCELLED.value


def check_cycles(memory: Memory) -> Iterator[Violation]:
    """Check the cycles of a record, and the rows that name one."""
    running: dict[str, list[UUID]] = defaultdict(list)
    for cycle in memory.cycles.values():
        yield from _itself(memory, cycle)
        if cycle["status"] == RUNNING:
            running[cycle["lane"]].append(cycle["id"])
    for lane, ids in running.items():
        if len(ids) > 1:
            sentence = f"{len(ids)} cycles run in the lane {lane}, at most 1 may."
            yield Violation("cycles.lane", sentence, {"cycles": ids})
    for row in memory.observations.values():
        yield from _behind(memory, row)
    yield from _behind_revisions(memory)


def _violation(invariant: str, cycle: Row, what: str, **rows: object) -> Violation:
    return Violation(invariant, f"Cycle {cycle['id']} {what}.", {"cycle": cycle["id"], **rows})


def _itself(memory: Memory, cycle: Row) -> Iterator[Violation]:
    status, finished = cycle["status"], cycle["finished_at"]
    if status not in Cycle.Status.values:
        yield _violation("cycles.status", cycle, f'has the unknown status "{status}"')
    elif (status == RUNNING) != (finished is None):
        when = "has no time it finished at" if finished is None else "has finished already"
        yield _violation("cycles.finished", cycle, f"is {status} and {when}")
    if cycle["interrupted"] and status != FAILED:
        yield _violation("cycles.interrupted", cycle, f"was interrupted and is {status}")
    if cycle["next_attempt_at"] is not None and status not in (FAILED, CANCELLED):
        yield _violation("cycles.again", cycle, f"is {status} and is to be tried again")
    if cycle["epoch"] > memory.record["epoch"]:
        what = f"is of epoch {cycle['epoch']}, its record only at {memory.record['epoch']}"
        yield _violation("cycles.epoch", cycle, what)
    lane = f"observer:{cycle['thread_id']}" if cycle["kind"] in OBSERVING else "reflector"
    if cycle["kind"] not in OBSERVING | REFLECTING:
        yield _violation("cycles.kind", cycle, f'is of the unknown kind "{cycle["kind"]}"')
    elif cycle["lane"] != lane:
        what = f"is of kind {cycle['kind']} and runs in the lane {cycle['lane']}"
        yield _violation("cycles.lane", cycle, what)


def _behind(memory: Memory, row: Row) -> Iterator[Violation]:
    """Check that a row was written by a cycle that is done, about the same messages."""
    if row["cycle_id"] is None:
        if row["kind"] != Observation.Kind.NOTE.value and _own(memory, row):
            sentence = f"The {row['kind']} {row['id']} was written by no cycle."
            yield Violation("cycles.rows", sentence, {"observation": row["id"]})
        return
    cycle = memory.cycles.get(row["cycle_id"])
    if cycle is None:
        sentence = f"The {row['kind']} {row['id']} was written by a cycle of another record."
        yield Violation("cycles.rows", sentence, {"observation": row["id"]})
        return
    if cycle["status"] != DONE:
        what = f"is {cycle['status']}, and {row['kind']} {row['id']} is its work"
        yield _violation("cycles.rows", cycle, what, observation=row["id"])
    if (row["kind"] == Observation.Kind.REFLECTION.value) != (cycle["kind"] in REFLECTING):
        what = f"is of kind {cycle['kind']}, and {row['kind']} {row['id']} is its work"
        yield _violation("cycles.rows", cycle, what, observation=row["id"])
    elif cycle["kind"] in OBSERVING and _about(cycle) != _about(row):
        what = f"is about {_about(cycle)}, and its observation {row['id']} about {_about(row)}"
        yield _violation("cycles.rows", cycle, what, observation=row["id"])


def _own(memory: Memory, row: Row) -> bool:
    return not memory.copied(row)


def _about(row: Row) -> str:
    return f"{row['first_position']}–{row['last_position']} of thread {row['thread_id']}"


def _behind_revisions(memory: Memory) -> Iterator[Violation]:
    for revision in memory.revisions:
        if revision["cycle_id"] is None:
            continue
        cycle = memory.cycles.get(revision["cycle_id"])
        rows = {"record": memory.record["id"], "revision": revision["number"]}
        if cycle is None:
            sentence = f"Revision {revision['number']} names a cycle of another record."
            yield Violation("cycles.revisions", sentence, rows)
        elif cycle["status"] != DONE:
            what = f"is {cycle['status']}, and revision {revision['number']} is its work"
            yield _violation("cycles.revisions", cycle, what, **rows)
