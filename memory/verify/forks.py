"""Check that a fork is its parent's thread up to where it began, and nothing of it after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.models import Message, Observation

from .report import Violation
from .rows import Memory, Row


def check_fork(thread: Row) -> Iterator[Violation]:
    """Check the copied messages of one thread against those of its parent, if it has one."""
    position, parent = thread["fork_position"], thread["parent_id"]
    rows = {"thread": thread["id"], "parent": parent}
    if parent is None:
        return
    if position is None or position > thread["last_position"]:
        sentence = f"Thread {thread['id']} was forked at {position}, beyond its last position."
        yield Violation("forks.position", sentence, rows)
        return
    own, theirs = _messages(thread["id"], position), _messages(parent, position)
    differing = sorted(p for p in own.keys() | theirs.keys() if not _same(own, theirs, p))
    if differing:
        sentence = (
            f"Message {differing[0]} of thread {thread['id']}, forked at {position}, "
            f"is not that of its parent {parent}."
        )
        yield Violation("forks.messages", sentence, {**rows, "messages": differing})


def _messages(thread: UUID, position: int) -> dict[int, Any]:
    found = Message.objects.filter(thread=thread, position__lte=position)
    return dict(found.values_list("position", "payload"))


def _same(own: dict[int, Any], theirs: dict[int, Any], position: int) -> bool:
    """Compare two payloads; one that was erased is like any."""
    one, other = own.get(position), theirs.get(position)
    if one is None or other is None:
        return False
    return one == other or is_erased(one) or is_erased(other)


def check_copies(memory: Memory) -> Iterator[Violation]:
    """Check that no copied row covers what lies beyond the fork of its thread."""
    for row in memory.observations.values():
        thread = memory.threads.get(row["thread_id"])
        if thread is None or not _by_fork(memory, row):
            continue
        end = thread["fork_position"]
        if end is None or (row["last_position"] or 0) > end:
            sentence = (
                f"The {row['kind']} {row['id']} was copied by a fork at {end} "
                f"and covers up to {row['last_position']}."
            )
            yield Violation("forks.range", sentence, {"observation": row["id"]})


def _by_fork(memory: Memory, row: Row) -> bool:
    return memory.causes.get(row["since"]) == "fork" and row["last_position"] is not None


def is_erased(payload: Any) -> bool:
    """Tell whether a message's text was destroyed."""
    return bool((payload.get("metadata") or {}).get("erased"))


def check_erased(thread: Row) -> Iterator[Violation]:
    """Check that no line, visible or not, rests on messages that were erased."""
    found = Message.objects.filter(thread=thread["id"]).order_by("position")
    erased = [p for p, payload in found.values_list("position", "payload") if is_erased(payload)]
    if not erased:
        return
    covering = Observation.objects.filter(thread=thread["id"], last_position__gte=erased[0])
    resting = Q(lines__first_position__isnull=False)
    lines = covering.filter(resting).values_list(
        "lines__id", "lines__first_position", "lines__last_position"
    )
    for line, first, last in lines:
        if any((first or 0) <= position <= (last or 0) for position in erased):
            sentence = f"Line {line} rests on messages {first}–{last}, of which some were erased."
            yield Violation("erased.lines", sentence, {"thread": thread["id"], "line": line})
