"""Read what the pages of a thread show, as of one revision and without a query in a loop.

A ``Scene`` reads lazily, so a region costs only the statements it needs; what two regions
share is read once. The record's revision comes first and everything about memory as of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import (
    Count,
    Exists,
    F,
    Max,
    Min,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from pydantic import ValidationError

from agents.models import AgentProfile, Turn
from memory.config import MemoryOptions
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Revision, Thread

WINDOW = 60
LATEST_CYCLES = 5
MOST_MARKERS = 80
LATEST_THREADS = 100


@dataclass(frozen=True)
class Coverage:
    """Hold how far a thread is covered by visible memory, and how far ahead it is buffered.

    ``buffered_tokens`` are those of the messages that the buffered observations stand for.
    """

    covered: int = 0
    buffered: int = 0
    buffered_tokens: int = 0

    def of(self, position: int) -> str:
        """Return where the message at a position stands: covered, buffered or neither."""
        if position <= self.covered:
            return "covered"
        return "buffered" if position <= self.buffered else ""


@dataclass(frozen=True)
class Extent:
    """Hold how many messages a thread has and how many tokens of them are not yet covered."""

    messages: int
    pending_tokens: int


class Scene:
    """Read a thread for its page. Raises Thread.DoesNotExist at the first look."""

    def __init__(self, thread_id: UUID, now: datetime, *, start: int | None = None) -> None:
        self.thread_id = thread_id
        self.now = now
        self._start = start

    @cached_property
    def thread(self) -> Thread:
        """Return the thread with its resource."""
        return Thread.objects.select_related("resource").get(pk=self.thread_id)

    @cached_property
    def zone(self) -> ZoneInfo:
        """Return the time zone in which the resource's days begin."""
        return ZoneInfo(self.thread.resource.time_zone)

    @cached_property
    def agent(self) -> AgentProfile | None:
        """Return the agent of the thread, if anybody described one."""
        return AgentProfile.objects.filter(slug=self.thread.agent).first()

    @cached_property
    def record(self) -> MemoryRecord | None:
        """Return the open record; None before anything was remembered."""
        return MemoryRecord.objects.filter(
            scope=MemoryRecord.Scope.THREAD, thread=self.thread_id, closed_at__isnull=True
        ).first()

    @property
    def remembers(self) -> bool:
        """Tell whether this thread and its agent have memory."""
        return self.thread.remembers and (self.agent is None or self.agent.remembers)

    @cached_property
    def options(self) -> MemoryOptions | ValidationError:
        """Return the options in force, or what is wrong with them."""
        of_agent = self.agent.memory_options if self.agent else {}
        of_record = self.record.config if self.record else {}
        try:
            return MemoryOptions.model_validate({**of_agent, **of_record})
        except ValidationError as error:
            return error

    @cached_property
    def coverage(self) -> Coverage:
        """Return how far memory covers the thread, as of the revision."""
        if self.record is None:
            return Coverage()
        shown = Q(since__lte=self.record.revision)
        found = Observation.objects.filter(
            record=self.record, thread=self.thread_id, kind=Observation.Kind.OBSERVATION
        ).aggregate(
            covered=Max("last_position", filter=shown),
            ahead=Max("last_position", filter=~shown | Q(since__isnull=True)),
            tokens=Sum("message_tokens", filter=~shown | Q(since__isnull=True)),
        )
        covered = found["covered"] or 0
        return Coverage(covered, max(covered, found["ahead"] or 0), found["tokens"] or 0)

    @cached_property
    def extent(self) -> Extent:
        """Return the size of the thread and of its raw tail."""
        raw = Q(position__gt=self.coverage.covered)
        found = Message.objects.filter(thread=self.thread_id).aggregate(
            messages=Count("pk"), pending=Sum("tokens", filter=raw)
        )
        return Extent(found["messages"], found["pending"] or 0)

    @cached_property
    def messages(self) -> list[Message]:
        """Return the newest messages in order, or those from the asked position on."""
        rows = Message.objects.filter(thread=self.thread_id)
        if self._start is not None:
            return list(rows.filter(position__gte=self._start).order_by("position"))
        return list(reversed(rows.order_by("-position")[:WINDOW]))

    @cached_property
    def first(self) -> int:
        """Return the position the window of the log begins at; 0 for an empty thread."""
        return self.messages[0].position if self.messages else 0

    @cached_property
    def turns(self) -> list[Turn]:
        """Return the newest turns, newest first, the withdrawn ones left out."""
        turns = Turn.objects.filter(thread=self.thread_id).exclude(status=Turn.Status.WITHDRAWN)
        return list(turns.order_by("-number")[:WINDOW])

    @cached_property
    def running_turn(self) -> Turn | None:
        """Return the turn under way."""
        return next((turn for turn in self.turns if turn.status == Turn.Status.RUNNING), None)

    @cached_property
    def waiting_turns(self) -> list[Turn]:
        """Return the prompts whose turn has not come, in order."""
        return [t for t in reversed(self.turns) if t.status == Turn.Status.WAITING]

    @cached_property
    def latest_cycles(self) -> list[Cycle]:
        """Return the running cycles and after them the newest ended ones."""
        mine = self._cycles.order_by(F("finished_at").desc(nulls_first=True), "-started_at")
        mine = mine[:LATEST_CYCLES]
        return list(mine.prefetch_related(Prefetch("observations", Observation.objects.all())))

    @cached_property
    def cycles(self) -> list[Cycle]:
        """Return the cycles that have a place in the window of the log, oldest first."""
        inside = Q(last_position__gte=self.first) | Q(last_position__isnull=True)
        newest = self._cycles.filter(inside).order_by("-started_at")
        return list(reversed(newest[:MOST_MARKERS]))

    @property
    def _cycles(self) -> QuerySet[Cycle]:
        mine = Q(thread=self.thread_id)
        if self.record is not None:
            mine |= Q(record=self.record, thread__isnull=True)
        return Cycle.objects.filter(mine)

    @cached_property
    def revisions(self) -> list[Revision]:
        """Return the newest activations and reflections, oldest first."""
        if self.record is None:
            return []
        newest = Revision.objects.filter(
            record=self.record,
            number__lte=self.record.revision,
            cause__in=[Revision.Cause.ACTIVATE, Revision.Cause.REFLECT],
        )
        return list(reversed(newest.order_by("-number")[:MOST_MARKERS]))

    @cached_property
    def written(self) -> list[Observation]:
        """Return what the cycles wrote and the activations showed in the window, with lines."""
        if self.record is None:
            return []
        shown = [r.number for r in self.revisions if r.cause == Revision.Cause.ACTIVATE]
        by_cycle = Q(cycle__in=[cycle.pk for cycle in self.cycles])
        by_revision = Q(since__in=shown, last_position__gte=self.first)
        return list(
            Observation.objects.filter(by_cycle | by_revision, record=self.record)
            .annotate(sources_through=Max("sources__last_position"))
            .order_by("first_position", "id")
            .prefetch_related(_lines())
        )

    @cached_property
    def written_by(self) -> dict[UUID, Observation]:
        """Return what each cycle wrote, by the cycle's id."""
        return {o.cycle_id: o for o in self.written if o.cycle_id is not None}

    @cached_property
    def shown_at(self) -> dict[int, list[Observation]]:
        """Return which observations each revision made visible."""
        found = defaultdict(list)
        for observation in self.written:
            if observation.since and observation.kind == Observation.Kind.OBSERVATION:
                found[observation.since].append(observation)
        return found

    @cached_property
    def chunks(self) -> list[Observation]:
        """Return the buffered observations with their lines, in order."""
        if self.record is None:
            return []
        return list(
            Observation.objects.filter(
                record=self.record,
                thread=self.thread_id,
                kind=Observation.Kind.OBSERVATION,
                first_position__gt=self.coverage.covered,
            )
            .order_by("first_position")
            .prefetch_related(_lines())
        )

    @cached_property
    def lines(self) -> list[Line]:
        """Return the lines the agent sees, in order, each with its observation."""
        if self.record is None:
            return []
        lines = Line.objects.as_of(self.record.pk, self.record.revision).in_order()
        return list(lines.select_related("observation"))

    @cached_property
    def line_tokens(self) -> int:
        """Return the tokens of all visible lines."""
        if self.record is None:
            return 0
        lines = Line.objects.as_of(self.record.pk, self.record.revision)
        return lines.aggregate(total=Sum("tokens"))["total"] or 0

    @cached_property
    def hints(self) -> tuple[str, str]:
        """Return the current task and the suggested response, each empty when unknown."""
        if self.record is None:
            return "", ""
        shown = Observation.objects.filter(
            record=self.record, thread=self.thread_id, since__lte=self.record.revision
        ).order_by("-last_position")
        found = MemoryRecord.objects.filter(pk=self.record.pk).values_list(
            Subquery(shown.exclude(current_task="").values("current_task")[:1]),
            Subquery(shown.exclude(suggested_response="").values("suggested_response")[:1]),
        )
        task, response = found.first() or ("", "")
        return task or "", response or ""

    @cached_property
    def siblings(self) -> Sequence[Thread]:
        """Return the newest threads of the resource; each says what is running in it."""
        return list(threads_of(self.thread.resource_id))

    def earlier_start(self) -> int:
        """Return where the log begins when one more window is shown; 0 when nothing is before."""
        before = Message.objects.filter(thread=self.thread_id, position__lt=self.first)
        newest = before.order_by("-position").values("position")[:WINDOW]
        start = Message.objects.filter(
            thread=self.thread_id, position__in=Subquery(newest)
        ).aggregate(start=Min("position"))["start"]
        return start or 0


def threads_of(resource_id: int) -> QuerySet[Thread]:
    """Select the newest threads of a resource, annotated with what is running in each."""
    cycles = Cycle.objects.running().filter(thread=OuterRef("pk"))
    return (
        Thread.objects.filter(resource=resource_id, is_lab=False)
        .annotate(
            answering=Exists(Turn.objects.running().filter(thread=OuterRef("pk"))),
            cycle_kind=Subquery(cycles.order_by("-started_at").values("kind")[:1]),
        )
        .order_by("-last_active_at", "-id")[:LATEST_THREADS]
    )


def _lines() -> Prefetch[str, QuerySet[Line], str]:
    return Prefetch("lines", queryset=Line.objects.order_by("ordinal", "id"))
