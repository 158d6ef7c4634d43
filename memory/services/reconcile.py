"""Put the cursors of a record where its observations say they are.

A cursor moves in the transaction that writes or shows observations, and nowhere else. Where rows
were changed by hand, or came from a damaged file, it may stand elsewhere, and then every claim of
its thread is refused as late. ``om verify`` finds such a cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q

from memory.models import Cursor, Observation


@dataclass(frozen=True)
class Moved:
    """Tell from where to where a cursor was put: buffered and observed through."""

    thread: UUID
    before: tuple[int, int] | None
    after: tuple[int, int]


def reconcile(record_id: UUID) -> Sequence[Moved]:
    """Move the cursors of a record that its observations contradict; return which were moved."""
    with transaction.atomic():
        # Held first: what others are about to show or write waits, or is among the rows below.
        cursors = Cursor.objects.filter(record=record_id).order_by("thread")
        held = {cursor.thread_id: cursor for cursor in cursors.select_for_update()}
        said = _said(record_id)
        moved = []
        for thread, after in sorted(said.items()):
            cursor = held.get(thread)
            before = (cursor.buffered_through, cursor.observed_through) if cursor else None
            if before != after:
                _put(record_id, thread, after)
                moved.append(Moved(thread, before, after))
        return moved


def drifted(record_id: UUID) -> int:
    """Return how many cursors of a record its observations contradict."""
    stored = {
        thread: (buffered, observed)
        for thread, buffered, observed in Cursor.objects.filter(record=record_id).values_list(
            "thread", "buffered_through", "observed_through"
        )
    }
    return sum(stored.get(thread) != place for thread, place in _said(record_id).items())


def _said(record_id: UUID) -> dict[UUID, tuple[int, int]]:
    """Return by thread how far its observations reach: all of them, and those that are shown."""
    covering = Observation.objects.filter(record=record_id, kind=Observation.Kind.OBSERVATION)
    known = Cursor.objects.filter(record=record_id).values_list("thread", flat=True)
    rows = (
        covering.order_by()
        .values_list("thread")
        .annotate(
            buffered=Max("last_position"),
            observed=Max("last_position", filter=Q(since__isnull=False)),
        )
    )
    found = {thread: (buffered, observed or 0) for thread, buffered, observed in rows}
    return {**dict.fromkeys(known, (0, 0)), **found}


def _put(record_id: UUID, thread: UUID, place: tuple[int, int]) -> None:
    buffered, observed = place
    Cursor.objects.update_or_create(
        record_id=record_id,
        thread_id=thread,
        defaults={"buffered_through": buffered, "observed_through": observed},
    )
