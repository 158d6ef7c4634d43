"""Change whose memory the conversations of a resource have: each its own, or one for all.

The other record, or records, are built from what the open ones show, with their cursors, and
those are closed, in one transaction. A closed record refuses commits, so that whatever is
under way for it gives up; it stays as history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memory.messages import safe_text
from memory.models import Cursor, MemoryRecord, Observation, Resource, Revision, Thread

from .anew import anew
from .carry import Carrier, Selection, Whole, begin
from .change import Change, Refused, change, give_up_cycles, give_up_reflections
from .share import as_own, parents_in, share_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WHY = "The scope of this memory was changed meanwhile."
Scope = MemoryRecord.Scope
Kind = Observation.Kind


@anew
def change_scope(
    resource_id: int,
    scope: str,
    *,
    author: User | None = None,
    reason: str = "",
    fence: Callable[[], None] = lambda: None,
) -> list[MemoryRecord]:
    """Let a resource's conversations share one memory, or have each its own; return the records.

    Lines keep their order; a reflection made from several conversations is left behind in the
    closed record, and the lines it stood for are shown in its place. ``fence`` is called first
    inside the transaction and raises while a turn runs. Raises Refused.
    """
    if scope not in Scope.values:
        raise Refused(f"There is no scope “{scope}”; use {' or '.join(Scope.values)}.")
    with transaction.atomic():
        fence()
        if not Resource.objects.filter(pk=resource_id).update(scope=scope):
            raise Refused("There is no such resource.")
        wanted_thread = scope == Scope.THREAD
        open_records = MemoryRecord.objects.filter(resource=resource_id, closed_at__isnull=True)
        old = list(open_records.filter(thread__isnull=wanted_thread).order_by("pk"))
        if not old:
            return []
        if wanted_thread:
            return _apart(old[0], author=author, reason=reason)
        return [_together(resource_id, old, author=author, reason=reason)]


def _together(
    resource_id: int, old: Sequence[MemoryRecord], *, author: User | None, reason: str
) -> MemoryRecord:
    """Join the records of threads to one, in the order their rows were shown."""
    if MemoryRecord.objects.filter(
        resource=resource_id, thread__isnull=True, closed_at__isnull=True
    ).exists():
        raise Refused(
            "Some conversations share a memory already, while others have their own. "
            "Give each its own first, then join them."
        )
    for record in old:
        _close(record, author=author, reason=reason)
    places = _places(old)
    configs = [record.config for record in old]
    joined = MemoryRecord.objects.create(
        resource_id=resource_id,
        scope=Scope.RESOURCE,
        config=configs[0] if all(config == configs[0] for config in configs) else {},
    )
    number = max([*places.values(), 1])
    for record in old:
        assert record.thread_id is not None
        carrier = Carrier(
            joined,
            number,
            {record.thread_id: record.thread_id},
            place=lambda place, pk=record.pk: places[pk, place],  # type: ignore[misc]
            notes_to=record.thread_id,
            trigger="scope",
        )
        carrier.carry(Selection(Whole(record.pk), lambda row: True))
        _cursor(joined, record.thread_id)
    _begin(joined, number, author=author, reason=reason)
    return joined


def _apart(old: MemoryRecord, *, author: User | None, reason: str) -> list[MemoryRecord]:
    """Give each thread that a shared record knows a record of its own."""
    _close(old, author=author, reason=reason)
    known = Q(cursors__record=old) | Q(observations__record=old)
    whole, parents = Whole(old.pk), parents_in(old.resource_id)
    records = []
    for thread in Thread.objects.filter(known, remembers=True).distinct().order_by("pk"):
        own = MemoryRecord.objects.filter(thread=thread, closed_at__isnull=True)
        if own.exists():
            continue
        record = MemoryRecord.objects.create(
            resource_id=old.resource_id, thread=thread, config=old.config
        )
        share = share_of(whole, thread.pk, parents)
        threads = {thread.pk: thread.pk, **as_own(share, thread.pk)}
        Carrier(record, old.revision, threads, trigger="scope").carry(share)
        _cursor(record, thread.pk)
        _begin(record, old.revision, author=author, reason=reason)
        records.append(record)
    return records


def _cursor(record: MemoryRecord, thread_id: UUID) -> None:
    Cursor.objects.get_or_create(record=record, thread_id=thread_id)


def _begin(record: MemoryRecord, number: int, *, author: User | None, reason: str) -> None:
    begin(
        record,
        Revision.Cause.SCOPE,
        number,
        author=author,
        thread_id=record.thread_id,
        reason=safe_text(reason.strip()),
    )


def _close(record: MemoryRecord, *, author: User | None, reason: str) -> None:
    """Make a record's last revision, and let it refuse every other."""
    with change(
        record.pk,
        Revision.Cause.SCOPE,
        author=author,
        reason=reason,
        thread_id=record.thread_id,
    ) as now:
        give_up_cycles(record.pk, WHY)
        give_up_reflections(record.pk)
        _shut(now)
    record.refresh_from_db()


def _shut(now: Change) -> None:
    MemoryRecord.objects.filter(pk=now.record.pk).update(closed_at=Now())


def _places(records: Iterable[MemoryRecord]) -> dict[tuple[UUID, int], int]:
    """Return a place in the joined record for each place of the old ones, in order of time.

    Within one record the order of places always stays, whatever its clock said.
    """
    shown: list[tuple[datetime, int, UUID]] = []
    for record in records:
        rows = Observation.objects.filter(record=record, place__isnull=False)
        used = {place for place in rows.values_list("place", flat=True) if place is not None}
        made = Revision.objects.filter(record=record).order_by("number")
        latest = None
        at = dict(made.values_list("number", "created_at"))
        for place in sorted(used):
            time = at.get(place) or min(at.values())
            latest = time if latest is None else max(latest, time)
            shown.append((latest, place, record.pk))
    shown.sort()
    return {(pk, place): rank for rank, (_, place, pk) in enumerate(shown, 1)}
