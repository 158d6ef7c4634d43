"""Read what the list shows of each conversation, in as many statements for one as for fifty."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import (
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce

from agents import costs, words
from agents.gauges import Bar, Gauge
from agents.looks import news_of_threads
from agents.models import AgentProfile, Turn
from memory.config import MemoryOptions
from memory.models import Cycle, MemoryRecord, Message, Observation, Revision, Thread
from memory.services.look import options_of

from .find import records_open
from .hits import Hit, hits_in
from .state import State, state_of

#: How long a title that the Observer gave is shown with the one before it.
TOLD_FOR = timedelta(days=1)


@dataclass(frozen=True)
class Row:
    """Show one conversation."""

    id: UUID
    title: str
    pinned: bool
    agent: str
    model: str
    state: State
    messages: Gauge | None
    observations: Gauge | None
    generation: int
    count: int
    active_at: str
    active_words: str
    cost: str
    unpriced: str
    temporary: bool
    off: bool
    archived: bool
    shared: bool
    resource: str
    hit: Hit | None = None
    news: str = ""
    was: str = ""


class Page:
    """Read the threads of one page of the list; they carry what ``find.found`` adds."""

    def __init__(
        self, threads: Sequence[Thread], now: datetime, *, search: str = "", reader: Any = None
    ) -> None:
        self.threads = threads
        self.now = now
        self.search = search
        self.reader = reader
        self.ids = [thread.pk for thread in threads]

    def rows(self) -> list[Row]:
        """Return a row for each thread, in order."""
        return [self._row(thread) for thread in self.threads]

    def _row(self, thread: Thread) -> Row:
        record, profile = self.record(thread), self.profiles.get(thread.agent)
        spent = self._cost(thread, profile)
        gauges = self._gauges(thread, record) if thread.remembers else (None, None)
        return Row(
            id=thread.pk,
            title=str(thread),
            pinned=thread.title_pinned,
            agent=profile.name if profile else thread.agent,
            model=profile.model_name if profile else "",
            state=self._state(thread),
            messages=gauges[0],
            observations=gauges[1],
            generation=record.generation if record else 0,
            count=self.counts[thread.pk],
            active_at=thread.last_active_at.isoformat(timespec="seconds"),
            active_words=words.ago(self.now, thread.last_active_at),
            cost=costs.words(spent.dollars if spent.known or not spent.unknown else None),
            unpriced=str(spent) if spent.known and spent.unknown else "",
            temporary=thread.pk in self._temporary,
            off=not thread.remembers,
            archived=thread.archived_at is not None,
            shared=record is not None and record.thread_id is None,
            resource=thread.resource.key,
            hit=self.hits.get(thread.pk),
            news=self._news(thread),
            was=self.former_titles.get(thread.pk, ""),
        )

    @cached_property
    def news(self) -> dict[UUID, int | None]:
        """Return how many messages of each are new to the reader."""
        return news_of_threads(self.reader, self.ids) if self.reader is not None else {}

    def _news(self, thread: Thread) -> str:
        count = self.news.get(thread.pk, 0)
        if count is None:
            return "not opened yet" if thread.last_position else ""
        return f"{count} new" if count else ""

    @cached_property
    def former_titles(self) -> dict[UUID, str]:
        """Return how threads were called until the Observer renamed them, for a day."""
        naming = Observation.objects.filter(
            thread=OuterRef("pk"), since__isnull=False, kind=Observation.Kind.OBSERVATION
        ).exclude(thread_title="")
        other = naming.exclude(thread_title=OuterRef("title")).order_by("-last_position")
        since = naming.filter(
            thread_title=OuterRef("title"), last_position__gt=OuterRef("named_until")
        ).order_by("last_position")
        renamed = (
            Thread.objects.filter(pk__in=self.ids, title_pinned=False)
            .annotate(was=Subquery(other.values("thread_title")[:1]))
            .annotate(named_until=Subquery(other.values("last_position")[:1]))
            .annotate(named_at=Subquery(since.values("cycle__finished_at")[:1]))
            .filter(named_at__gt=self.now - TOLD_FOR)
        )
        return dict(renamed.values_list("pk", "was"))

    # ---- memory

    @cached_property
    def _temporary(self) -> set[UUID]:
        """Return the threads of which nothing was ever remembered."""
        found = Thread.objects.temporary().filter(pk__in=self.ids)
        return set(found.values_list("pk", flat=True))

    @cached_property
    def profiles(self) -> dict[str, AgentProfile]:
        """Return the agents of the threads by slug."""
        slugs = {thread.agent for thread in self.threads}
        return {each.slug: each for each in AgentProfile.objects.filter(slug__in=slugs)}

    @cached_property
    def _records(self) -> tuple[dict[UUID, MemoryRecord], dict[int, MemoryRecord]]:
        """Return the open records: by thread those of one, by resource the shared ones."""
        resources = {thread.resource_id for thread in self.threads}
        found = records_open().filter(
            Q(thread__in=self.ids) | Q(thread__isnull=True, resource__in=resources)
        )
        own: dict[UUID, MemoryRecord] = {}
        common: dict[int, MemoryRecord] = {}
        for record in found:
            if record.thread_id is not None:
                own[record.thread_id] = record
            else:
                common[record.resource_id] = record
        return own, common

    def record(self, thread: Thread) -> MemoryRecord | None:
        """Return the record a thread's memory is in, None before there is one."""
        own, common = self._records
        if thread.pk in own or not thread.remembers:
            return own.get(thread.pk)
        shares = thread.resource.scope or self.options(thread, None).scope
        return common.get(thread.resource_id) if shares == MemoryRecord.Scope.RESOURCE else None

    def options(self, thread: Thread, record: MemoryRecord | None) -> MemoryOptions:
        """Return the options in force for a thread."""
        profile = self.profiles.get(thread.agent)
        of_agent = json.dumps(profile.memory_options if profile else {})
        return options_of(thread.agent, of_agent, json.dumps(record.config if record else {}))

    @cached_property
    def _covered(self) -> dict[tuple[UUID, UUID], dict[str, Any]]:
        """Return how far each thread is covered in each record, and the tokens buffered."""
        found = (
            Observation.objects.filter(
                thread__in=self.ids,
                kind=Observation.Kind.OBSERVATION,
                record__closed_at__isnull=True,
            )
            .values("record", "thread")
            .annotate(
                through=Max("last_position", filter=Q(since__isnull=False)),
                ahead=Sum("message_tokens", filter=Q(since__isnull=True)),
            )
            .order_by()
        )
        return {(row["record"], row["thread"]): dict(row) for row in found}

    def _in_record(self, thread: Thread) -> dict[str, Any]:
        record = self.record(thread)
        return {} if record is None else self._covered.get((record.pk, thread.pk), {})

    @cached_property
    def _pending(self) -> dict[UUID, int]:
        """Return the tokens of each thread's messages that memory has not observed."""
        raw = Q(pk__in=[])
        for thread in self.threads:
            through = self._in_record(thread).get("through") or 0
            if thread.last_position > through:
                raw |= Q(thread=thread.pk, position__gt=through)
        found = Message.objects.filter(raw).values_list("thread").order_by()
        return dict(found.annotate(tokens=Sum("tokens")))

    @cached_property
    def _beside(self) -> dict[int, int]:
        """Return the raw tokens of all threads that share a record, by resource."""
        shared = [record.pk for record in self._records[1].values()]
        if not shared:
            return {}
        covering = Observation.objects.filter(
            record__in=shared,
            thread=OuterRef("pk"),
            kind=Observation.Kind.OBSERVATION,
            since__isnull=False,
        )
        through = covering.order_by().values("thread").annotate(last=Max("last_position"))
        raw = Message.objects.filter(thread=OuterRef("pk"), position__gt=OuterRef("through"))
        tokens = raw.order_by().values("thread").annotate(of=Sum("tokens")).values("of")
        tails = (
            Thread.objects.there()
            .filter(
                ~Exists(records_open().filter(thread=OuterRef("pk"))),
                resource__in=list(self._records[1]),
                remembers=True,
            )
            .annotate(through=Coalesce(Subquery(through.values("last")), 0))
            .filter(last_position__gt=F("through"))
            .annotate(raw=Subquery(tokens))
        )
        found: Counter[int] = Counter()
        for resource, count in tails.values_list("resource", "raw"):
            found[resource] += count or 0
        return found

    @cached_property
    def _lines(self) -> dict[UUID, int]:
        """Return the tokens of the visible lines of each record."""
        records = {each.pk for thread in self.threads if (each := self.record(thread))}
        latest = Revision.objects.filter(record__in=records, number=F("record__revision"))
        return dict(latest.values_list("record", "tokens_after"))

    def _gauges(self, thread: Thread, record: MemoryRecord | None) -> tuple[Gauge, Gauge]:
        kept = self._lines.get(record.pk, 0) if record else 0
        limits = self.options(thread, record).thresholds().given(kept)
        own = self._pending.get(thread.pk, 0)
        shared = record is not None and record.thread_id is None
        total = max(own, self._beside.get(thread.resource_id, 0)) if shared else own
        ahead = min(own, self._in_record(thread).get("ahead") or 0)
        top = max(total, limits.ceiling)
        messages = _gauge(
            f"messages-{thread.pk}",
            "Messages",
            (("ahead", ahead), ("live", own - ahead), ("beside", total - own)),
            limits.observe,
            top,
        )
        observations = _gauge(
            f"observations-{thread.pk}",
            "Observations",
            (("kept", kept),),
            limits.reflect,
            max(kept, limits.reflect_ceiling),
        )
        return messages, observations

    # ---- what happens

    @cached_property
    def counts(self) -> Counter[UUID]:
        """Return how many messages each thread has."""
        found = Message.objects.filter(thread__in=self.ids).values_list("thread").order_by()
        return Counter(dict(found.annotate(count=Count("pk"))))

    @cached_property
    def _cycles(self) -> dict[UUID, Cycle]:
        latest = [each.last_cycle for each in self.threads if each.last_cycle]  # type: ignore[attr-defined]
        return Cycle.objects.in_bulk(latest)

    @cached_property
    def _turns(self) -> dict[UUID, Turn]:
        latest = [each.last_turn for each in self.threads if each.last_turn]  # type: ignore[attr-defined]
        return Turn.objects.defer("draft_text", "prompt").in_bulk(latest)

    def _state(self, thread: Thread) -> State:
        turn = self._turns.get(thread.last_turn)  # type: ignore[attr-defined]
        cycle = self._cycles.get(thread.last_cycle)  # type: ignore[attr-defined]
        return state_of(turn, cycle, ZoneInfo(thread.resource.time_zone))

    # ---- cost

    @cached_property
    def _used(self) -> dict[UUID, list[dict[str, Any]]]:
        """Return what the answers of each thread used, by the model that gave them."""
        found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
        for row in costs.of_turns(Turn.objects.filter(thread__in=self.ids), "thread"):
            found[row["thread"]].append(row)
        return found

    @cached_property
    def _memory_cost(self) -> dict[UUID, costs.Spent]:
        """Return what observing and reflecting cost, by thread."""
        unpriced = Q(input_tokens__gt=0) & ~costs.PRICED
        mine = Q(thread__in=self.ids) | Q(thread__isnull=True, record__thread__in=self.ids)
        found = (
            Cycle.objects.filter(mine)
            .annotate(of=Coalesce("thread", "record__thread"))
            .values_list("of")
            .order_by()
            .annotate(
                dollars=Sum("cost"),
                known=Count("pk", filter=Q(cost__isnull=False)),
                unknown=Count("pk", filter=unpriced),
            )
        )
        spent: dict[UUID, costs.Spent] = defaultdict(costs.Spent)
        for of, dollars, known, unknown in found:
            spent[of] += costs.Spent(dollars or Decimal(0), known, unknown)
        return spent

    def _cost(self, thread: Thread, profile: AgentProfile | None) -> costs.Spent:
        spent = self._memory_cost.get(thread.pk, costs.Spent())
        otherwise = profile.model_name if profile else ""
        return sum((costs.spent_on(row, otherwise) for row in self._used[thread.pk]), spent)

    # ---- search

    @cached_property
    def hits(self) -> dict[UUID, Hit]:
        """Return where the words searched for stand in each thread, titles apart."""
        return dict(hits_in(self.ids, self.search)) if self.search else {}


def _gauge(key: str, name: str, parts: Sequence[tuple[str, int]], limit: int, top: int) -> Gauge:
    value = sum(size for _, size in parts)
    label = f"{words.tokens(value)} / {words.tokens(limit)}"
    return Gauge(
        key=key,
        name=name,
        value=value,
        top=top,
        label=label,
        exact=f"{value} of {limit} tokens",
        spoken=f"{words.spoken(value)} of {words.spoken(limit)} tokens",
        caption="",
        bars=tuple(_bars(parts, top)),
        ticks=(),
        limit=words.percent(limit, top),
    )


def _bars(parts: Collection[tuple[str, int]], top: int) -> Iterator[Bar]:
    start = 0
    for look, size in parts:
        if size > 0:
            yield Bar(look, words.percent(start, top), words.percent(size, top))
        start += max(0, size)
