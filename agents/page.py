"""Read what the pages of a thread show, as of one revision and without a query in a loop.

A ``Scene`` reads lazily, so a region costs only the statements it needs; what two regions
share is read once. The record's revision comes first and everything about memory as of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import (
    Count,
    F,
    Max,
    Model,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from pydantic import ValidationError

from agents import known, shared
from agents.extent import Coverage, Extent, Listed, threads_of
from agents.models import AgentProfile, Turn
from agents.requested import Request, requests_of
from agents.stamps import Stamp
from memory.config import MemoryOptions, merged, problems
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Revision, Thread
from memory.models.state import State, read_state
from memory.services.look import options_in, scope_of

WINDOW = 60
#: How many messages are shown at once from one before the window on.
LONGEST = 3 * WINDOW
LATEST_CYCLES = 5
#: From how many cycles of a kind it is told how long the next one takes.
LIKE_IT = 9
MOST_MARKERS = 80
#: How many lines the panel shows; the memory page shows all.
MOST_LINES = 200
REFLECTS = (Cycle.Kind.REFLECT, Cycle.Kind.BUFFER_REFLECTION)


#: Causes whose lines are few, and shown at their marker: those written, or taken away.
SHOWING = (Revision.Cause.EDIT, Revision.Cause.NOTE, Revision.Cause.PIN)
HIDING = (Revision.Cause.FORGET,)


Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row", bound=Model)


def _kept(
    *parts: str, shared: bool = False, windowed: bool = False
) -> Callable[[Callable[[Scene], Value]], cached_property[Value]]:
    """Read a fact once for as long as its record and these parts of the scene's stamp stay.

    ``shared`` is one that all threads of the record have in common, ``windowed`` one that
    depends on about where the window of the log begins.
    """

    def of(read: Callable[[Scene], Value]) -> cached_property[Value]:
        def value(scene: Scene) -> Value:
            if scene.record is None or scene.stamp is None:
                return read(scene)
            owner = scene.record.pk if shared else scene.thread_id
            at = scene.place(parts, shared=shared), scene.before if windowed else None
            return known.fact(read.__name__, owner, at, lambda: read(scene))

        value.__doc__ = read.__doc__
        return cached_property(value)

    return of


class Scene:
    """Read a thread for its page. Raises Thread.DoesNotExist at the first look.

    With a ``stamp`` that was read before, what cannot have changed is not read again.
    """

    def __init__(
        self,
        thread_id: UUID,
        now: datetime,
        *,
        start: int | None = None,
        stamp: Stamp | None = None,
        siblings: Sequence[Listed] | None = None,
    ) -> None:
        self.thread_id = thread_id
        self.now = now
        self.stamp = stamp
        self._start = start
        self._siblings = siblings

    def place(self, parts: Collection[str], *, shared: bool = False) -> Hashable:
        """Return what differs once the record, or these parts of the stamp, moved."""
        record, stamp = self.record, self.stamp
        assert record is not None
        assert stamp is not None
        heard = known.moved(record.pk, ("revision", *parts))
        own = () if shared else known.moved(self.thread_id, ("revision", *parts))
        at = tuple(stamp[part] for part in parts)
        # With the time zone lines move to other days, and are counted anew.
        zone = self.thread.resource.time_zone
        return record.pk, record.revision, record.epoch, zone, at, heard, own

    def lasting(
        self, what: str, of: Iterable[Key], read: Callable[[Collection[Key]], Mapping[Key, Value]]
    ) -> dict[Key, Value]:
        """Return what models did, read once: until people change memory it stays as it is."""
        record = self.record
        if record is None or self.stamp is None:
            return dict(read(list(of)))
        at = record.pk, record.epoch, self.thread.resource.time_zone
        return known.facts((what, self.thread_id), of, at, read)

    @cached_property
    def state(self) -> State:
        """Return the thread, its record and how far it is observed, as of one revision."""
        return read_state(self.thread_id)

    @property
    def thread(self) -> Thread:
        """Return the thread with its resource."""
        return self.state.thread

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
        """Return the open record the thread's memory is in; None before anything was remembered."""
        record = self.state.record
        if record is None or record.thread_id is not None:
            return record
        shares = self.thread.remembers and scope_of(self.state) == MemoryRecord.Scope.RESOURCE
        return record if shares else None

    @property
    def is_shared(self) -> bool:
        """Tell whether other conversations remember in the same record."""
        return self.record is not None and self.record.thread_id is None

    @property
    def remembers(self) -> bool:
        """Tell whether this thread has memory; its agent only says how threads begin."""
        return self.thread.remembers

    @cached_property
    def is_temporary(self) -> bool:
        """Tell whether nothing was ever remembered of this thread, and nothing will be."""
        return self.thread.is_temporary

    @property
    def options(self) -> MemoryOptions:
        """Return the options in force."""
        return options_in(self.state)

    @property
    def wrong(self) -> str:
        """Return what is wrong with the options that were given; empty when nothing is."""
        overrides = self.state.record.config if self.state.record else {}
        return _wrong(self.state.of_agent, json.dumps(overrides))

    @cached_property
    def coverage(self) -> Coverage:
        """Return how far memory covers the thread, as of the revision."""
        if self.record is None:
            return Coverage()
        covered = self.state.observed_through
        return Coverage(covered, max(covered, self.state.written_through))

    @_kept("position")
    def extent(self) -> Extent:
        """Return the size of the thread and of its raw tail."""
        raw = Q(position__gt=self.coverage.covered)
        found = Message.objects.filter(thread=self.thread_id).aggregate(
            messages=Count("pk"), pending=Sum("tokens", filter=raw)
        )
        return Extent(found["messages"], found["pending"] or 0)

    @_kept("beside", shared=True)
    def sharing(self) -> list[shared.Tail]:
        """Return the conversations of a shared record."""
        if self.record is None or not self.is_shared:
            return []
        return shared.tails_in(self.record)

    @cached_property
    def tails(self) -> list[shared.Tail]:
        """Return the other conversations of a shared record that have raw messages."""
        return [tail for tail in self.sharing if tail.messages and tail.thread != self.thread_id]

    @property
    def pending_tokens(self) -> int:
        """Return the raw tokens that count for the threshold: those of all sharing threads."""
        return self.extent.pending_tokens + sum(tail.tokens for tail in self.tails)

    @property
    def sharers(self) -> int:
        """Return how many conversations the record is of."""
        return len(self.sharing) if self.is_shared else 1

    @cached_property
    def told(self) -> tuple[str, int]:
        """Return what the agent will be told of other conversations, and its tokens."""
        return shared.told(self.state, self.tails) if self.is_shared else ("", 0)

    @_kept("cycle", shared=True)
    def _buffered_of(self) -> dict[UUID, int]:
        summed = self._buffered.order_by().values_list("thread")
        return dict(summed.annotate(total=Sum("message_tokens")))

    @property
    def buffered_tokens(self) -> tuple[int, int]:
        """Return the message tokens of what is buffered: of this thread, and of all."""
        found = self._buffered_of
        return found.get(self.thread_id, 0), sum(found.values())

    @cached_property
    def messages(self) -> list[Message]:
        """Return the newest messages in order, or those from the asked position on.

        Of the latter there is one more than are shown: what happened after them is told by it.
        """
        rows = Message.objects.filter(thread=self.thread_id)
        if self._start is not None:
            later = rows.filter(position__gte=self._start).order_by("position")
            return list(later[: LONGEST + 1])
        return self._newest("messages", rows, "position")[::-1]

    def _newest(
        self,
        name: str,
        rows: QuerySet[Row],
        number: str,
        lasts: Callable[[Row], bool] = lambda row: True,
    ) -> list[Row]:
        """Return the newest rows of the thread, newest first; those that last are read once."""

        def read(after: Row | None) -> list[Row]:
            later = rows.filter(**{f"{number}__gt": getattr(after, number)}) if after else rows
            return list(later.order_by(f"-{number}")[:WINDOW])

        if self.record is None or self.stamp is None:
            return read(None)
        at = self.place(())
        return known.newest(name, self.thread_id, at, read, most=WINDOW, lasts=lasts)

    @cached_property
    def first(self) -> int:
        """Return the position the window of the log begins at; 0 for an empty thread."""
        return self.messages[0].position if self.messages else 0

    @property
    def before(self) -> int:
        """Return a position at or before the window that stays while the window moves a little."""
        return self.first - self.first % WINDOW

    @cached_property
    def turns(self) -> list[Turn]:
        """Return the newest turns, newest first, the withdrawn ones left out."""
        turns = Turn.objects.filter(thread=self.thread_id).exclude(status=Turn.Status.WITHDRAWN)
        return self._newest("turns", turns, "number", lambda turn: turn.finished_at is not None)

    @cached_property
    def running_turn(self) -> Turn | None:
        """Return the turn under way."""
        return next((turn for turn in self.turns if turn.status == Turn.Status.RUNNING), None)

    @cached_property
    def waiting_turns(self) -> list[Turn]:
        """Return the prompts whose turn has not come, in order."""
        return [t for t in reversed(self.turns) if t.status == Turn.Status.WAITING]

    @_kept("cycle", shared=True)
    def latest_cycles(self) -> list[Cycle]:
        """Return the running cycles and after them the newest ended ones."""
        mine = self._cycles.order_by(F("finished_at").desc(nulls_first=True), "-started_at")
        mine = mine[:LATEST_CYCLES]
        mine = mine.select_related("thread")
        return list(mine.prefetch_related(Prefetch("observations", Observation.objects.all())))

    def lasted(self, cycle: Cycle) -> list[timedelta]:
        """Return how long the last cycles took that did the same as one of this memory."""
        same = self._cycles.filter(lane=cycle.lane, kind=cycle.kind, status=Cycle.Status.DONE)
        times = same.order_by("-started_at").values_list("started_at", "finished_at")
        return [end - begin for begin, end in times[:LIKE_IT] if end is not None]

    @_kept("cycle", windowed=True)
    def cycles(self) -> list[Cycle]:
        """Return the cycles that may have a place in the window of the log, oldest first."""
        own = Q(thread=self.thread_id) | Q(kind__in=REFLECTS)
        inside = Q(last_position__gte=self.before) | Q(last_position__isnull=True)
        newest = self._cycles.filter(own, inside).order_by("-started_at")
        return list(reversed(newest[:MOST_MARKERS]))

    @property
    def _cycles(self) -> QuerySet[Cycle]:
        return Cycle.objects.filter(record=self.record) if self.record else Cycle.objects.none()

    @_kept()
    def revisions(self) -> list[Revision]:
        """Return the newest revisions but those of observing at once, oldest first."""
        if self.record is None:
            return []
        newest = Revision.objects.filter(record=self.record, number__lte=self.record.revision)
        newest = newest.exclude(cause=Revision.Cause.OBSERVE).select_related("author")
        return list(reversed(newest.order_by("-number")[:MOST_MARKERS]))

    @_kept()
    def changed(self) -> dict[int, list[Line]]:
        """Return the lines that people wrote or took away, by revision."""
        showing = {r.number for r in self.revisions if r.cause in SHOWING}
        hiding = {r.number for r in self.revisions if r.cause in HIDING}
        found: dict[int, list[Line]] = defaultdict(list)
        if self.record is None or not showing | hiding:
            return found
        lines = Line.objects.filter(
            Q(since__in=showing) | Q(until__in=hiding), observation__record=self.record
        )
        for line in lines.order_by("observation__place", "observation_id", "ordinal", "id"):
            if line.since in showing:
                found[line.since or 0].append(line)
            if line.until in hiding:
                found[line.until or 0].append(line)
        return found

    @cached_property
    def relatives(self) -> dict[UUID, Thread]:
        """Return the thread this one was forked from, those forked there, and those from here."""
        thread = self.thread
        if self.stamp is not None and not self.stamp["forks"] and thread.parent_id is None:
            return {}
        family = Q(parent=self.thread_id)
        if thread.parent_id is not None:
            beside = Q(parent=thread.parent_id, fork_position=thread.fork_position)
            family |= Q(pk=thread.parent_id) | beside
        found = Thread.objects.there().filter(family).exclude(pk=self.thread_id)
        return {each.pk: each for each in found.order_by("pk")}

    @cached_property
    def requests(self) -> dict[UUID, list[Request]]:
        """Return the requests of each turn in the window, by the turn's id, in order."""
        shown = [t for t in self.turns if t.last_position is None or t.last_position >= self.first]
        if self.record is None or self.stamp is None:
            return requests_of([turn.pk for turn in shown])
        # Nothing is sent any more for a turn that has ended.
        ended = [turn.pk for turn in shown if turn.finished_at is not None]
        under_way = [turn.pk for turn in shown if turn.started_at and turn.finished_at is None]
        found = known.facts("requests", ended, self.place(()), requests_of)
        return found | (requests_of(under_way) if under_way else {})

    @_kept("cycle", windowed=True)
    def written(self) -> list[Observation]:
        """Return what the cycles wrote and the activations showed in the window."""
        if self.record is None:
            return []
        shown = [r.number for r in self.revisions if r.cause == Revision.Cause.ACTIVATE]
        by_cycle = Q(cycle__in=[cycle.pk for cycle in self.cycles])
        by_revision = Q(since__in=shown, thread=self.thread_id, last_position__gte=self.before)
        of_mine = Q(sources__thread=self.thread_id)
        return list(
            Observation.objects.filter(by_cycle | by_revision, record=self.record)
            .annotate(sources_through=Max("sources__last_position", filter=of_mine))
            .order_by("first_position", "id")
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
            inside = (observation.last_position or 0) >= self.first
            if inside and observation.since and observation.kind == Observation.Kind.OBSERVATION:
                found[observation.since].append(observation)
        return found

    @cached_property
    def chunks(self) -> list[Observation]:
        """Return the buffered observations with their lines, in order, this thread's first."""
        found = self._buffered.select_related("thread").order_by("thread", "first_position")
        lines = Prefetch("lines", Line.objects.order_by("ordinal", "id"))
        chunks = list(found.prefetch_related(lines))
        return sorted(chunks, key=lambda chunk: chunk.thread_id != self.thread_id)

    @property
    def _buffered(self) -> QuerySet[Observation]:
        if self.record is None:
            return Observation.objects.none()
        hidden = Q(since__isnull=True) | Q(since__gt=self.record.revision)
        return Observation.objects.filter(
            hidden, record=self.record, kind=Observation.Kind.OBSERVATION
        )

    @cached_property
    def lines(self) -> list[Line]:
        """Return the lines the agent sees, in order, each with its observation and thread."""
        if self.record is None:
            return []
        lines = Line.objects.as_of(self.record.pk, self.record.revision).in_order()
        return list(lines.select_related("observation__thread"))

    @cached_property
    def newest_lines(self) -> list[Line]:
        """Return the last of the lines the agent sees, in order: as many as the panel shows."""
        if self.record is None:
            return []
        lines = Line.objects.as_of(self.record.pk, self.record.revision).in_order().reverse()
        return list(reversed(lines.select_related("observation__thread")[:MOST_LINES]))

    @_kept(shared=True)
    def line_totals(self) -> tuple[int, int]:
        """Return how many lines are visible, and their tokens as sent."""
        if self.record is None:
            return 0, 0
        record = self.record
        latest = Revision.objects.filter(record=record.pk, number=record.revision)
        lines = Line.objects.as_of(record.pk, record.revision).annotate(
            size=Subquery(latest.values("tokens_after"))
        )
        found = lines.aggregate(count=Count("pk"), tokens=Max("size"))
        return found["count"], found["tokens"] or 0

    @property
    def line_tokens(self) -> int:
        """Return the tokens of all visible lines."""
        return self.line_totals[1]

    @property
    def hints(self) -> tuple[str, str]:
        """Return the current task and the suggested response, each empty when unknown."""
        if self.record is None:
            return "", ""
        return self.state.current_task, self.state.suggested_response

    @property
    def siblings(self) -> Sequence[Listed]:
        """Return the newest threads of the resource; each says what is running in it."""
        if self._siblings is None:
            self._siblings = threads_of(self.thread.resource_id)
        return self._siblings

    def earlier_start(self) -> int:
        """Return where the log begins when one more window is shown; 0 when nothing is before."""
        before = Message.objects.filter(thread=self.thread_id, position__lt=self.first)
        newest = before.order_by("-position").values_list("position", flat=True)[:WINDOW]
        return min(newest, default=0)


@lru_cache(maxsize=256)
def _wrong(of_agent: str, overrides: str) -> str:
    try:
        merged(json.loads(of_agent) or {}, json.loads(overrides))
    except ValidationError as error:
        return problems(error)[0]
    return ""
