"""Note how far a person has looked: at a thread, at a memory, or at all there is."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Greatest

from agents.looks import VISIT, BellLook, MemoryLook, ThreadLook
from memory.models import MemoryRecord, Thread

if TYPE_CHECKING:
    from django.contrib.auth.models import User

AT_ONCE = 500


def look_at_thread(user: User, thread: Thread, through: int, at: datetime) -> None:
    """Note that somebody looked at a thread up to a message; nobody looks beyond the last."""
    seen = min(through, thread.last_position)
    known = ThreadLook.objects.filter(user=user, thread=thread)
    if not known.update(through=Greatest("through", seen), at=at):
        _keep([ThreadLook(user=user, thread=thread, through=seen, at=at)])


def look_at_memory(
    user: User, record: MemoryRecord, through: int, at: datetime, *, all_seen: bool = False
) -> None:
    """Note that somebody looked at a memory up to a revision.

    What was new when the visit began stays new until it ends, unless ``all_seen`` says that
    nothing is any more.
    """
    seen = min(through, record.revision)
    look = MemoryLook.objects.filter(user=user, record=record).first()
    if look is None:
        _keep([MemoryLook(user=user, record=record, through=seen, since=seen, at=at)])
        return
    further = max(seen, look.through)
    since = further if all_seen else look.began(at)
    soon = at - look.at < VISIT / 2
    if soon and (further, since) == (look.through, look.since):
        return
    MemoryLook.objects.filter(pk=look.pk).update(through=further, since=since, at=at)


def look_at_all(user: User, threads: QuerySet[Thread], at: datetime) -> None:
    """Note that nothing of these threads is new to a person any more."""
    ends = threads.order_by().values_list("pk", "last_position")
    _move_all(ThreadLook, user, "thread_id", list(ends), at)


def look_at_all_memories(user: User, records: QuerySet[MemoryRecord], at: datetime) -> None:
    """Note that nothing of these memories is new to a person any more."""
    ends = records.order_by().values_list("pk", "revision")
    _move_all(MemoryLook, user, "record_id", list(ends), at, "since")


def look_at_bell(user: User, at: datetime) -> None:
    """Note that nothing of the bell is new to a person any more."""
    BellLook.objects.update_or_create(user=user, defaults={"at": at})


def _move_all(
    model: Any, user: User, of: str, ends: list[tuple[UUID, int]], at: datetime, *too: str
) -> None:
    moved = ("through", *too)
    rows = [model(user=user, at=at, **{of: pk}, **dict.fromkeys(moved, end)) for pk, end in ends]
    model.objects.bulk_create(
        rows,
        batch_size=AT_ONCE,
        update_conflicts=True,
        unique_fields=["user", of.removesuffix("_id")],
        update_fields=[*moved, "at"],
    )


def _keep(rows: list[Any]) -> None:
    # Two tabs may look for the first time at once: one row is enough.
    type(rows[0]).objects.bulk_create(rows, ignore_conflicts=True)
