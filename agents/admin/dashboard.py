"""Read the dashboard: what needs attention, fails, costs, condenses, takes and waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest
from django.utils import timezone

from agents.costs import PRICED
from agents.costs import words as price
from agents.models import AuditEntry, Turn, TurnQuerySet
from agents.services.expire import EXPIRED
from memory.models import Cycle, Observation, Thread
from memory.models.cycle import CycleQuerySet

from .labs import real, shows_labs

DAYS = 7
MOST = 8
SAMPLE = 500
WATCHING = (Cycle.Kind.BUFFER, Cycle.Kind.OBSERVE)


@dataclass(frozen=True)
class Latency:
    """Say how long a kind of cycle takes: half of them at most, and nineteen of twenty."""

    name: str
    runs: int
    half: str
    most: str


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of the admin's first page with what it shows."""
    since = timezone.now() - timedelta(days=DAYS)
    rows = _Rows(labs=shows_labs(request))
    return {
        **context,
        "title": "Dashboard",
        "days": DAYS,
        "labs": rows.labs,
        "attention": _attention(rows),
        "failures": _failures(rows, since),
        "costs": _costs(rows, since),
        "compression": _compression(rows),
        "latencies": _latencies(rows, since),
        "queue": _queue(rows),
        "expired": _expired(since),
        "kept": settings.KEPT_DAYS,
        "audit": list(AuditEntry.objects.exclude(action=EXPIRED)[:MOST]),
    }


@dataclass(frozen=True)
class _Rows:
    """Select what is counted: real rows, and those of labs when asked."""

    labs: bool

    @property
    def cycles(self) -> CycleQuerySet:
        return real(Cycle.objects.all(), "record__resource", labs=self.labs)

    @property
    def turns(self) -> TurnQuerySet:
        return real(Turn.objects.all(), "thread__resource", labs=self.labs)

    @property
    def observations(self) -> QuerySet[Observation]:
        rows = Observation.objects.filter(kind=Observation.Kind.OBSERVATION)
        return real(rows, "record__resource", labs=self.labs)

    @property
    def threads(self) -> QuerySet[Thread]:
        return real(Thread.objects.all(), "resource", labs=self.labs)


def _attention(rows: _Rows) -> dict[str, Any]:
    """Return failed cycles that nothing followed yet, lapsed leases and turns that failed."""
    failed = rows.cycles.tried_again().filter(status=Cycle.Status.FAILED)
    return {
        "failed": list(failed.select_related("thread").order_by("-pk")[:MOST]),
        "lapsed_cycles": list(rows.cycles.lapsed().select_related("thread")[:MOST]),
        "lapsed_turns": list(rows.turns.lapsed().select_related("thread")[:MOST]),
        "turns": list(
            rows.turns.filter(status=Turn.Status.FAILED)
            .select_related("thread")
            .order_by("-pk")[:MOST]
        ),
    }


def _failures(rows: _Rows, since: datetime) -> dict[str, Any]:
    ended = rows.cycles.filter(started_at__gte=since).exclude(status=Cycle.Status.RUNNING)
    counted = ended.aggregate(
        all=Count("pk"),
        failed=Count("pk", filter=Q(status=Cycle.Status.FAILED)),
        discarded=Count("pk", filter=Q(status=Cycle.Status.DISCARDED)),
        cancelled=Count("pk", filter=Q(status=Cycle.Status.CANCELLED)),
    )
    share = counted["failed"] / counted["all"] if counted["all"] else 0
    return {**counted, "share": f"{share:.1%}"}


def _costs(rows: _Rows, since: datetime) -> list[dict[str, Any]]:
    """Return what cycles cost day by day, the latest first."""
    days = (
        rows.cycles.filter(started_at__gte=since)
        .order_by()
        .annotate(day=TruncDate("started_at"))
        .values("day")
        .annotate(
            calls=Count("call", distinct=True),
            tokens=Sum("input_tokens") + Sum("output_tokens"),
            dollars=Sum("cost"),
            unknown=Count("pk", filter=Q(status=Cycle.Status.DONE) & ~PRICED),
        )
        .order_by("-day")
    )
    return [{**row, "price": price(_dollars(row))} for row in days]


def _dollars(row: Mapping[str, Any]) -> Decimal | None:
    """Return what a day cost; nothing at all is not the same as nothing known."""
    found: Decimal | None = row["dollars"]
    return Decimal(0) if found is None and not row["unknown"] else found


def _compression(rows: _Rows) -> dict[str, Any]:
    """Return how many tokens of messages became how many of observations."""
    shown = rows.observations.filter(since__isnull=False)
    sums = shown.aggregate(messages=Sum("message_tokens"), lines=Sum("tokens"), rows=Count("pk"))
    messages, lines = sums["messages"] or 0, sums["lines"] or 0
    ratio = f"{messages / lines:.1f}×" if lines else "–"
    return {"messages": messages, "lines": lines, "rows": sums["rows"], "ratio": ratio}


def _expired(since: datetime) -> list[tuple[str, int]]:
    """Return how much of what is not there any more, since it had been kept long enough."""
    entries = AuditEntry.objects.filter(action=EXPIRED, at__gte=since)
    counts: Counter[str] = Counter()
    for numbers in entries.values_list("numbers", flat=True):
        counts.update(numbers)
    return counts.most_common()


def _latencies(rows: _Rows, since: datetime) -> list[Latency]:
    done = rows.cycles.filter(status=Cycle.Status.DONE, started_at__gte=since)
    spans = done.order_by("-pk").values_list("kind", "started_at", "finished_at")[:SAMPLE]
    took: dict[str, list[float]] = {"Observers": [], "Reflectors": []}
    for kind, started, finished in spans:
        if finished is not None:
            name = "Observers" if kind in WATCHING else "Reflectors"
            took[name].append((finished - started).total_seconds())
    return [_latency(name, sorted(seconds)) for name, seconds in took.items()]


def _latency(name: str, seconds: Sequence[float]) -> Latency:
    if not seconds:
        return Latency(name, 0, "–", "–")
    half, most = (seconds[min(len(seconds) - 1, int(len(seconds) * q))] for q in (0.5, 0.95))
    return Latency(name, len(seconds), f"{half:.1f} s", f"{most:.1f} s")


def _queue(rows: _Rows) -> dict[str, Any]:
    turns = rows.turns.aggregate(
        waiting=Count("pk", filter=Q(status=Turn.Status.WAITING)),
        running=Count("pk", filter=Q(status=Turn.Status.RUNNING)),
    )
    buffered = rows.observations.filter(since__isnull=True).count()
    spoken = rows.threads.filter(last_position__gt=0)
    latest = spoken.aggregate(at=Max("last_active_at"))["at"]
    running = rows.cycles.running().count()
    return {**turns, "cycles": running, "buffered": buffered, "latest": latest}
