"""Read the dashboard: what needs attention, fails, costs, condenses, takes and waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest
from django.utils import timezone

from agents.costs import words as price
from agents.models import AuditEntry, Turn
from memory.models import Cycle, Message, Observation

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
    return {
        **context,
        "title": "Dashboard",
        "days": DAYS,
        "attention": _attention(),
        "failures": _failures(since),
        "costs": _costs(since),
        "compression": _compression(),
        "latencies": _latencies(since),
        "queue": _queue(),
        "audit": list(AuditEntry.objects.all()[:MOST]),
    }


def _attention() -> dict[str, Any]:
    """Return failed cycles that nothing followed yet, lapsed leases and turns that failed."""
    failed = Cycle.objects.filter(status=Cycle.Status.FAILED, next_attempt_at__isnull=False)
    return {
        "failed": list(failed.select_related("thread").order_by("-pk")[:MOST]),
        "lapsed_cycles": list(Cycle.objects.lapsed().select_related("thread")[:MOST]),
        "lapsed_turns": list(Turn.objects.lapsed().select_related("thread")[:MOST]),
        "turns": list(
            Turn.objects.filter(status=Turn.Status.FAILED)
            .select_related("thread")
            .order_by("-pk")[:MOST]
        ),
    }


def _failures(since: datetime) -> dict[str, Any]:
    ended = Cycle.objects.filter(started_at__gte=since).exclude(status=Cycle.Status.RUNNING)
    counted = ended.aggregate(
        all=Count("pk"),
        failed=Count("pk", filter=Q(status=Cycle.Status.FAILED)),
        discarded=Count("pk", filter=Q(status=Cycle.Status.DISCARDED)),
    )
    share = counted["failed"] / counted["all"] if counted["all"] else 0
    return {**counted, "share": f"{share:.1%}"}


def _costs(since: datetime) -> list[dict[str, Any]]:
    """Return what cycles cost day by day, the latest first."""
    rows = (
        Cycle.objects.filter(started_at__gte=since)
        .order_by()
        .annotate(day=TruncDate("started_at"))
        .values("day")
        .annotate(
            calls=Count("call", distinct=True),
            tokens=Sum("input_tokens") + Sum("output_tokens"),
            dollars=Sum("cost"),
            unknown=Count("pk", filter=Q(cost__isnull=True, status=Cycle.Status.DONE)),
        )
        .order_by("-day")
    )
    return [{**row, "price": price(row["dollars"])} for row in rows]


def _compression() -> dict[str, Any]:
    """Return how many tokens of messages became how many of observations."""
    shown = Observation.objects.filter(kind=Observation.Kind.OBSERVATION, since__isnull=False)
    sums = shown.aggregate(messages=Sum("message_tokens"), lines=Sum("tokens"), rows=Count("pk"))
    messages, lines = sums["messages"] or 0, sums["lines"] or 0
    ratio = f"{messages / lines:.1f}×" if lines else "–"
    return {"messages": messages, "lines": lines, "rows": sums["rows"], "ratio": ratio}


def _latencies(since: datetime) -> list[Latency]:
    done = Cycle.objects.filter(status=Cycle.Status.DONE, started_at__gte=since)
    rows = done.order_by("-pk").values_list("kind", "started_at", "finished_at")[:SAMPLE]
    took: dict[str, list[float]] = {"Observers": [], "Reflectors": []}
    for kind, started, finished in rows:
        if finished is not None:
            name = "Observers" if kind in WATCHING else "Reflectors"
            took[name].append((finished - started).total_seconds())
    return [_latency(name, sorted(seconds)) for name, seconds in took.items()]


def _latency(name: str, seconds: Sequence[float]) -> Latency:
    if not seconds:
        return Latency(name, 0, "–", "–")
    half, most = (seconds[min(len(seconds) - 1, int(len(seconds) * q))] for q in (0.5, 0.95))
    return Latency(name, len(seconds), f"{half:.1f} s", f"{most:.1f} s")


def _queue() -> dict[str, Any]:
    turns = Turn.objects.aggregate(
        waiting=Count("pk", filter=Q(status=Turn.Status.WAITING)),
        running=Count("pk", filter=Q(status=Turn.Status.RUNNING)),
    )
    buffered = Observation.objects.filter(
        kind=Observation.Kind.OBSERVATION, since__isnull=True
    ).count()
    latest = Message.objects.aggregate(at=Max("created_at"))["at"]
    running = Cycle.objects.running().count()
    return {**turns, "cycles": running, "buffered": buffered, "latest": latest}
