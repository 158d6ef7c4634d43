"""Suppose that a resource's conversations shared one memory, or had each its own.

The view is made of what the open records show, as ``scope`` would build the other record from
them; nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import F, OuterRef, Q, Subquery

from memory.models import Line, MemoryRecord, Message, Observation, Revision, Thread

from . import kept
from .carry import Whole
from .foresee import line_of
from .kept import Raw
from .look import Other, View
from .share import parents_in, share_of

Scope = MemoryRecord.Scope
MOST_OTHERS = 50
"""How many other conversations are read, the newest first; a request has room for few."""


def in_scope(view: View, scope: str) -> View:
    """Return a view as it would be in a scope; the view itself where it is in it already."""
    if scope == view.record.scope or scope not in Scope.values:
        return view
    return _together(view) if scope == Scope.RESOURCE else _apart(view)


def _record(view: View, scope: str) -> MemoryRecord:
    old = view.record
    return MemoryRecord(
        resource_id=old.resource_id,
        thread=view.thread if scope == Scope.THREAD else None,
        scope=scope,
        config=old.config,
        revision=old.revision,
        epoch=old.epoch,
    )


def _in_record(view: View, record: MemoryRecord, lines: Sequence[Line]) -> View:
    memory = kept.Shown(record.revision, record.epoch, tuple(lines))
    return replace(view, record=record, memory=memory, others=(), reflection=None)


def _apart(view: View) -> View:
    parents = parents_in(view.record.resource_id)
    selection = share_of(Whole(view.record.pk), view.thread.pk, parents)
    lines = [
        line_of(line, row)
        for row in selection.needed
        if row.since is not None
        for line in sorted(selection.lines.get(row.pk, ()), key=lambda line: line.ordinal)
    ]
    return _in_record(view, _record(view, Scope.THREAD), lines)


def _together(view: View) -> View:
    records = list(
        MemoryRecord.objects.filter(
            resource=view.record.resource_id, thread__isnull=False, closed_at__isnull=True
        )
    )
    joined = _in_record(view, _record(view, Scope.RESOURCE), _lines(records))
    return replace(joined, others=tuple(_others(view, records)))


def _lines(records: Sequence[MemoryRecord]) -> Sequence[Line]:
    """Return all lines that records show, in the order of the times they were first shown."""
    first_shown = Revision.objects.filter(
        record=OuterRef("observation__record"), number=OuterRef("observation__place")
    )
    lines = Line.objects.filter(
        observation__record__in=records, since__isnull=False, until__isnull=True
    ).annotate(
        of_kind=F("observation__kind"),
        of_thread=F("observation__thread_id"),
        shown_at=Subquery(first_shown.values("created_at")[:1]),
    )
    return list(
        lines.order_by(
            "shown_at",
            "observation__place",
            "observation__record_id",
            F("observation__thread_id").asc(nulls_first=True),
            F("observation__first_position").asc(nulls_first=True),
            "observation_id",
            "ordinal",
        )
    )


def _others(view: View, records: Sequence[MemoryRecord]) -> list[Other]:
    threads = Thread.objects.filter(
        resource=view.record.resource_id, remembers=True, last_position__gt=0
    ).exclude(pk=view.thread.pk)
    newest = list(threads.order_by("-last_active_at")[:MOST_OTHERS])
    written = _written(records)
    tails = {thread.pk: _tail(thread, written.get(thread.pk, ())) for thread in newest}
    raw = _raw([(pk, tail.observed_through) for pk, tail in tails.items()])
    return [replace(tail, raw=raw[pk]) for pk, tail in tails.items() if pk in raw]


def _tail(thread: Thread, rows: Sequence[Observation]) -> Other:
    shown = [row.last_position or 0 for row in rows if row.since is not None]
    return Other(
        thread=thread.pk,
        title=thread.title,
        observed_through=max(shown, default=0),
        buffered_through=max((row.last_position or 0 for row in rows), default=0),
        raw=(),
        buffered=tuple(row for row in rows if row.since is None),
    )


def _written(records: Sequence[MemoryRecord]) -> dict[UUID, list[Observation]]:
    """Return by thread what was observed of it, in order."""
    found: dict[UUID, list[Observation]] = {}
    rows = Observation.objects.filter(record__in=records, kind=Observation.Kind.OBSERVATION)
    for row in rows.order_by("thread", "first_position"):
        if row.thread_id is not None:
            found.setdefault(row.thread_id, []).append(row)
    return found


def _raw(tails: Sequence[tuple[UUID, int]]) -> dict[UUID, list[Raw]]:
    """Return by thread the messages after a position, of the threads that have any."""
    found: dict[UUID, list[Raw]] = {}
    if not tails:
        return found
    after = reduce(or_, (Q(thread=thread, position__gt=position) for thread, position in tails))
    for row in Message.objects.filter(after).order_by("thread", "position"):
        found.setdefault(row.thread_id, []).append(Raw(row))
    return found
