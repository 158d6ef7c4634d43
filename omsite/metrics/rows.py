"""Read from rows what waits and what runs: it is the same whichever process is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.models import Turn
from memory.models import Cycle
from memory.services.sweep import rested

logger = logging.getLogger(__name__)


class Rows(Collector):
    """Count turns and cycles that are not over, and say how long the oldest has waited.

    Five statements, each on an index of what is not over: they cost the same however much is.
    """

    def __init__(self, read: Callable[[], Sequence[Metric]] | None = None) -> None:
        self._read = read or read_rows

    def describe(self) -> Sequence[Metric]:
        """Return nothing: a registry need not ask the database when it is made."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; while the database is away, only that it is."""
        up = GaugeMetricFamily("omsite_database_up", "Whether the database answered.")
        try:
            found = self._read()
            up.add_metric([], 1)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("What waits was not measured: %s", type(error).__name__)
            found = []
            up.add_metric([], 0)
        yield up
        yield from found


def read_rows() -> Sequence[Metric]:
    """Return how many turns and cycles are open, by status, and how long the oldest has waited."""
    turns = _gauge("turns_open", "Turns that are not over, by status.", "status")
    cycles = _gauge("cycles_open", "Cycles that run, rest or are overdue.", "kind", "status")
    ages = _gauge("queue_age_seconds", "How long the oldest has waited to begin.", "queue")
    ages.add_metric(["turns"], _seconds(_count_turns(turns)))
    ages.add_metric(["cycles"], _seconds(_count_cycles(cycles)))
    return [turns, cycles, ages]


def _count_turns(counts: GaugeMetricFamily) -> datetime | None:
    """Count turns; return since when the oldest prompt waits."""
    waiting = Turn.objects.waiting().order_by()
    found = waiting.aggregate(count=Count("pk"), since=Min("created_at"))
    running = Turn.objects.running().aggregate(count=Count("pk"), lapsed=_LAPSED)
    counts.add_metric(["waiting"], found["count"])
    counts.add_metric(["running"], running["count"] - running["lapsed"])
    counts.add_metric(["lapsed"], running["lapsed"])
    since: datetime | None = found["since"]
    return since


def _count_cycles(counts: GaugeMetricFamily) -> datetime | None:
    """Count cycles; return since when the oldest could have been tried again."""
    running = _by_kind(Cycle.objects.running(), lapsed=_LAPSED)
    resting = _by_kind(Cycle.objects.filter(next_attempt_at__gt=Now()))
    overdue = _by_kind(rested(), since=Min("next_attempt_at"))
    for kind in Cycle.Kind.values:
        runs = running.get(kind, {"count": 0, "lapsed": 0})
        counts.add_metric([kind, "running"], runs["count"] - runs["lapsed"])
        counts.add_metric([kind, "lapsed"], runs["lapsed"])
        counts.add_metric([kind, "resting"], resting.get(kind, {"count": 0})["count"])
        counts.add_metric([kind, "overdue"], overdue.get(kind, {"count": 0})["count"])
    return min((found["since"] for found in overdue.values()), default=None)


_LAPSED = Count("pk", filter=Q(lease_expires_at__lt=Now()))


def _by_kind(cycles: QuerySet[Cycle], **besides: Any) -> dict[str, dict[str, Any]]:
    found = cycles.order_by().values("kind").annotate(count=Count("pk"), **besides)
    return {row["kind"]: dict(row) for row in found}


def _gauge(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"omsite_{name}", about, labels=labels)


def _seconds(since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (timezone.now() - since).total_seconds())
