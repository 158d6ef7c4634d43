"""Follow a thread's messages to its forks and to what it was forked from, and hold them all still.

Who erases holds every one of these threads first, and who forks holds the one that is copied:
else a copy made meanwhile would keep what was erased.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from memory.models import MemoryRecord, Thread


@dataclass(frozen=True, order=True)
class Span:
    """Name messages ``first..last`` of a thread."""

    thread: UUID
    first: int
    last: int


def copies_of(span: Span) -> tuple[Span, ...]:
    """Return the span and its copies, up and down the forks."""
    found: dict[UUID, Span] = {}
    todo = [span]
    while todo:
        each = todo.pop()
        known = found.get(each.thread)
        if each.last < each.first or (known is not None and known.last >= each.last):
            continue
        found[each.thread] = each
        thread = Thread.objects.get(pk=each.thread)
        if thread.parent_id is not None:
            shared = min(each.last, thread.fork_position or 0)
            todo.append(Span(thread.parent_id, each.first, shared))
        for fork, position in thread.forks.values_list("pk", "fork_position"):
            todo.append(Span(fork, each.first, min(each.last, position or 0)))
    return tuple(sorted(found.values()))


def hold(thread_id: UUID) -> Thread | None:
    """Return a thread; until the transaction ends nobody adds to it, forks it or a relative.

    A commit may still look whether they are there. All who take several take them in one order.
    """
    held: dict[UUID, Thread] = {}
    while not (tree := _tree(thread_id)) <= held.keys():
        threads = Thread.objects.filter(pk__in=tree).order_by("pk")
        held = {thread.pk: thread for thread in threads.select_for_update(no_key=True)}
    return held.get(thread_id)


def _tree(thread_id: UUID) -> set[UUID]:
    """Return a thread with all that it was forked from, and with all their forks."""
    found: set[UUID] = set()
    todo = set(Thread.objects.filter(pk=thread_id).values_list("pk", flat=True))
    while todo:
        found |= todo
        above = Thread.objects.filter(pk__in=todo, parent__isnull=False)
        below = Thread.objects.filter(parent__in=todo)
        near = {*above.values_list("parent", flat=True), *below.values_list("pk", flat=True)}
        todo = {pk for pk in near if pk is not None} - found
    return found


def leave_forks(thread: Thread) -> None:
    """Give the forks of a thread that is deleted another parent, so that they stay relatives.

    What it was forked from, else the fork that has the most of it: each still shares its
    messages with that one, up to where it was forked.
    """
    forks = list(thread.forks.order_by("-fork_position", "pk"))
    parent, most = thread.parent_id, thread.fork_position or 0
    if parent is None and forks:
        eldest, *forks = forks
        parent, most = eldest.pk, eldest.fork_position or 0
    for fork in forks:
        shared = min(fork.fork_position or 0, most)
        Thread.objects.filter(pk=fork.pk).update(parent=parent, fork_position=shared)


def hold_for_good(thread_id: UUID) -> list[MemoryRecord]:
    """Return a thread's records once no commit looks for them or it any more.

    In the order in which commits do: whoever holds one of them then never waits for another.
    """
    records = list(MemoryRecord.objects.select_for_update().filter(thread=thread_id))
    Thread.objects.select_for_update().get(pk=thread_id)
    return records
