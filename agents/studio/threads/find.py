"""Choose the conversations of the list: by words, by filters, in an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agents.models import AgentProfile, Turn
from memory.models import Cycle, Line, MemoryRecord, Message, Thread, holding

LONGEST_SEARCH = 200

STATES = {
    "": "Any",
    "running": "At work",
    "failed": "Failed",
    "idle": "At rest",
    "temporary": "Temporary",
    "archived": "Archived",
}
MEMORY = {"": "Any", "yes": "Has memory", "no": "No memory yet"}
VIEWS = {"": "List", "board": "Board by state"}
UPDATED = {"": "Any time", "1": "Today", "7": "Last 7 days", "30": "Last 30 days"}

#: What the list can be sorted by, each with its columns; the id decides between equals.
ORDERS = {
    "activity": ("last_active_at",),
    "title": ("title",),
    "messages": ("last_position",),
}
DESCENDING = "-"


@dataclass(frozen=True)
class Filters:
    """Hold what is asked for; every field is safe to use as it is."""

    words: str = ""
    state: str = ""
    agent: str = ""
    memory: str = ""
    updated: str = ""
    sort: str = "-activity"
    view: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filters:
        """Return what a query string asks for; what means nothing counts as not asked."""
        return cls(
            words=" ".join(query.get("q", "").replace("\0", "").split())[:LONGEST_SEARCH],
            state=_one_of(STATES, query.get("state")),
            agent=query.get("agent", "")[:100].replace("\0", ""),
            memory=_one_of(MEMORY, query.get("memory")),
            updated=_one_of(UPDATED, query.get("updated")),
            sort=_sort(query.get("sort")),
            view=_one_of(VIEWS, query.get("view")),
        )

    @property
    def any(self) -> bool:
        """Tell whether anything is left out because of these."""
        return bool(self.words or self.state or self.agent or self.memory or self.updated)

    @property
    def column(self) -> str:
        """Return what the list is sorted by."""
        return self.sort.removeprefix(DESCENDING)

    @property
    def descending(self) -> bool:
        """Tell whether the greatest comes first."""
        return self.sort.startswith(DESCENDING)

    def sorted_by(self, column: str) -> Filters:
        """Return the same, sorted by a column; by the one it is sorted by, the other way round."""
        if column == self.column:
            return replace(self, sort=column if self.descending else f"-{column}")
        return replace(self, sort=column if column == "title" else f"-{column}")

    def query(self, **more: str | int) -> str:
        """Return these as a query string, with what else an address needs."""
        own = {
            "q": self.words,
            "state": self.state,
            "agent": self.agent,
            "memory": self.memory,
            "updated": self.updated,
            "sort": "" if self.sort == "-activity" else self.sort,
            "view": self.view,
        }
        return urlencode({name: value for name, value in {**more, **own}.items() if value})


def _one_of(known: Mapping[str, str], asked: str | None) -> str:
    return asked if asked is not None and asked in known else ""


def _sort(asked: str | None) -> str:
    known = asked is not None and asked.removeprefix(DESCENDING) in ORDERS
    return asked if known and asked else "-activity"


def found(threads: QuerySet[Thread], filters: Filters, now: datetime) -> QuerySet[Thread]:
    """Keep the threads that are asked for, in the order asked for."""
    chosen = threads.filter(archived_at__isnull=filters.state != "archived")
    chosen = _in_state(_moving(chosen), filters.state)
    if filters.agent:
        chosen = chosen.filter(agent=filters.agent)
    if filters.memory:
        chosen = chosen.filter(_has_memory() if filters.memory == "yes" else ~_has_memory())
    if filters.updated:
        since = now - timedelta(days=int(filters.updated))
        chosen = chosen.filter(last_active_at__gte=since)
    if filters.words:
        chosen = _naming(chosen, filters.words)
    sign = DESCENDING if filters.descending else ""
    return chosen.order_by(*(f"{sign}{name}" for name in ORDERS[filters.column]), "-id")


def _moving(threads: QuerySet[Thread]) -> QuerySet[Thread]:
    """Add what happened last in each thread."""
    cycles = Cycle.objects.filter(thread=OuterRef("pk")).order_by("-started_at")
    turns = Turn.objects.filter(thread=OuterRef("pk"))
    turns = turns.exclude(status=Turn.Status.WITHDRAWN).order_by("-number")
    return threads.annotate(
        last_cycle=Subquery(cycles.values("pk")[:1]),
        last_cycle_status=Subquery(cycles.values("status")[:1]),
        last_turn=Subquery(turns.values("pk")[:1]),
        last_turn_status=Subquery(turns.values("status")[:1]),
    )


_AT_WORK = Q(last_turn_status__in=(Turn.Status.WAITING, Turn.Status.RUNNING)) | Q(
    last_cycle_status=Cycle.Status.RUNNING
)
_WRONG = Q(last_turn_status__in=(Turn.Status.FAILED, Turn.Status.INTERRUPTED)) | Q(
    last_cycle_status=Cycle.Status.FAILED
)


def _in_state(threads: QuerySet[Thread], state: str) -> QuerySet[Thread]:
    # A thread without turns or cycles has no status at all: it is neither at work nor wrong.
    match state:
        case "running":
            return threads.filter(_AT_WORK)
        case "failed":
            return threads.filter(_WRONG).exclude(pk__in=threads.filter(_AT_WORK).values("pk"))
        case "idle":
            return threads.exclude(pk__in=threads.filter(_AT_WORK | _WRONG).values("pk"))
        case "temporary":
            return threads.filter(pk__in=Thread.objects.temporary().values("pk"))
    return threads


def _has_memory() -> Q:
    """Select threads of which lines are visible, in their own record or a shared one."""
    shown = Line.objects.filter(since__isnull=False, until__isnull=True)
    own = shown.filter(observation__record__thread=OuterRef("pk"))
    said = shown.filter(observation__thread=OuterRef("pk"))
    return Q(Exists(own)) | Q(Exists(said))


def _naming(threads: QuerySet[Thread], words: str) -> QuerySet[Thread]:
    """Keep the threads whose title, messages or visible lines contain some words."""
    messages = Message.objects.filter(holding("text", words), thread=OuterRef("pk"))
    lines = lines_naming(words).filter(observation__thread=OuterRef("pk"))
    of_record = lines_naming(words).filter(observation__record__thread=OuterRef("pk"))
    return threads.filter(
        holding("title", words) | Exists(messages) | Exists(lines) | Exists(of_record)
    )


def lines_naming(words: str) -> QuerySet[Line]:
    """Select the visible lines that contain some words."""
    shown = Line.objects.filter(holding("text", words), since__isnull=False, until__isnull=True)
    return shown.filter(observation__record__closed_at__isnull=True)


def agents_of(threads: QuerySet[Thread]) -> list[AgentProfile]:
    """Return the agents that some threads are with, by name."""
    used = threads.order_by().values("agent")
    return list(AgentProfile.objects.filter(slug__in=used).order_by("name"))


def records_open() -> QuerySet[MemoryRecord]:
    """Select the records in use."""
    return MemoryRecord.objects.filter(closed_at__isnull=True)
