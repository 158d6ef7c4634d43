"""Let time pass in a lab, by moving all that happened there into the past.

A clock told what to say would have to reach every part that asks for the time. Here all keep
theirs: what lies in a lab keeps its distances and lies further back, so that conversations have
rested, a gap comes before the next message, and days have gone by.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.lab.models import Lab
from agents.models import RequestSnapshot, Turn
from memory.models import Cycle, Line, MemoryRecord, Message, Revision, Thread
from memory.services.sizes import recount_resource


def rest(lab: Lab, time: timedelta) -> None:
    """Have so much time pass for every conversation and memory of a lab."""
    panes = lab.panes.values_list("thread", "resource")
    threads, resources = {each for each, _ in panes}, {each for _, each in panes}
    records = MemoryRecord.objects.filter(Q(thread__in=threads) | Q(resource__in=resources))
    with transaction.atomic():
        # Whatever any process keeps at hand of these is not asked for any more.
        records.update(epoch=F("epoch") + 1)
        for rows, fields in _dated(threads, records):
            rows.update(**{name: F(name) - time for name in fields})
        # Lines of one day may lie in two now.
        for resource in resources:
            recount_resource(resource)


def _dated(
    threads: set[UUID], records: QuerySet[MemoryRecord]
) -> Iterator[tuple[QuerySet[Any], tuple[str, ...]]]:
    """Yield rows of a lab with the names of their times."""
    ids = list(records.values_list("pk", flat=True))
    turns = Turn.objects.filter(thread__in=threads)
    yield Thread.objects.filter(pk__in=threads), ("created_at", "last_active_at")
    yield Message.objects.filter(thread__in=threads), ("created_at",)
    yield turns, ("created_at", "started_at", "finished_at")
    yield RequestSnapshot.objects.filter(turn__in=turns), ("created_at",)
    yield records, ("created_at", "closed_at")
    yield Revision.objects.filter(record__in=ids), ("created_at",)
    yield Cycle.objects.filter(record__in=ids), ("started_at", "finished_at")
    yield Line.objects.filter(observation__record__in=ids), ("said_at",)
