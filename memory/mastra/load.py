"""Store what was read from Mastra as rows of ours, or say what storing it would do."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from uuid import NAMESPACE_URL, UUID, uuid5
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils.text import slugify

from memory.engine.statements import written
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Resource,
    Revision,
    Thread,
)
from memory.models.cycle import REFLECTOR_LANE
from memory.models.observation import ReflectionSource
from memory.services import kept
from memory.services.append import append_within
from memory.services.sizes import tokens_at
from memory.tokens import count_line

from .convert import messages_of
from .source import Source, SourceMessage, SourceRecord, SourceThread, moment

Kind = Observation.Kind
_SECTION = re.compile(r'<thread id="([^"]*)">(.*?)(?:</thread>|\Z)', re.DOTALL)
_BOUNDARY = re.compile(r"\s*--- message boundary \([^)]*\) ---\s*")


@dataclass
class Report:
    """Count what was stored, or would be; ``notes`` say in sentences what became of the rest."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    stored: bool = False


@dataclass(frozen=True)
class _Stored:
    """Hold a thread of ours with the messages it came from, each with its last position."""

    source: SourceThread
    thread: Thread
    messages: Sequence[tuple[SourceMessage, int]]

    def observed_through(self, record: SourceRecord, generations: Iterable[SourceRecord]) -> int:
        """Return the position up to which Mastra had observed the thread without a gap."""
        cursor = self.source.memory.get("lastObservedMessageCursor") or {}
        times = [moment(self.source.memory.get("lastObservedAt") or cursor.get("createdAt"))]
        if record.thread is not None or times == [None]:
            times += [each.observed_at for each in generations]
        until = max((at for at in times if at is not None), default=None)
        observed = frozenset().union(*(each.observed for each in generations))
        through = 0
        for message, position in takewhile(
            lambda pair: _is_observed(pair[0], until, observed), self.messages
        ):
            # A prompt whose answer is still raw stays raw beside it.
            through = position if message.role == "assistant" else through
        return through


def _is_observed(message: SourceMessage, until: datetime | None, ids: frozenset[str]) -> bool:
    return message.id in ids or (until is not None and message.created_at <= until)


def load(source: Source, *, agent: str, dry_run: bool = False) -> Report:
    """Store every thread that is not here yet, with its memory; all of it or nothing.

    ``agent`` names who goes on with the conversations. A dry run stores everything and takes
    it back.
    """
    report = Report()
    with transaction.atomic():
        stored = list(_threads(source, agent, report))
        _records(source, {each.source.id: each for each in stored}, report)
        report.stored = not dry_run
        transaction.set_rollback(dry_run)
    kept.forget_everything()
    return report


def _threads(source: Source, agent: str, report: Report) -> Iterator[_Stored]:
    messages: dict[str, list[SourceMessage]] = defaultdict(list)
    for message in source.messages:
        messages[message.thread].append(message)
    known = {message.thread for message in source.messages} - {each.id for each in source.threads}
    if known:
        report.notes.append(f"{len(known)} threads have messages but no row, and were left out.")
    for thread in source.threads:
        stored = _thread(thread, messages[thread.id], agent, report)
        if stored is not None:
            yield stored


def _thread(
    source: SourceThread, messages: Sequence[SourceMessage], agent: str, report: Report
) -> _Stored | None:
    resource = _resource(source.resource, report)
    thread, made = Thread.objects.get_or_create(
        pk=uuid5(NAMESPACE_URL, f"mastra:{source.resource}:{source.id}"),
        defaults={
            "resource": resource,
            "title": source.title[:200],
            "agent": agent,
            "metadata": {"mastra": source.id},
            "created_at": source.created_at,
        },
    )
    report.counts["threads" if made else "threads here already"] += 1
    if not made:
        return None
    placed = []
    for message in messages:
        converted = messages_of(message)
        if not converted:
            report.counts["messages that say nothing"] += 1
            continue
        raws = append_within(thread.pk, converted, at=message.created_at)
        report.counts["messages"] += len(raws)
        placed.append((message, raws[-1].position))
    Thread.objects.filter(pk=thread.pk).update(last_active_at=source.updated_at)
    return _Stored(source, thread, placed)


def _resource(name: str, report: Report) -> Resource:
    key = slugify(name)[:80]
    if key != name:
        key = f"{key}-{uuid5(NAMESPACE_URL, name).hex[:8]}".lstrip("-")
    resource, made = Resource.objects.get_or_create(key=key, defaults={"name": name[:200]})
    report.counts["resources"] += made
    return resource


def _records(source: Source, stored: Mapping[str, _Stored], report: Report) -> None:
    generations: dict[tuple[str, str | None], list[SourceRecord]] = defaultdict(list)
    for record in source.records:
        generations[record.resource, record.thread].append(record)
    for (resource, thread), found in generations.items():
        mine = [
            each
            for each in stored.values()
            if each.source.resource == resource and thread in (None, each.source.id)
        ]
        if mine:
            _record(mine, found, report)


def _record(mine: Sequence[_Stored], generations: Sequence[SourceRecord], report: Report) -> None:
    newest = generations[-1]
    if newest.chunks:
        report.notes.append(
            f"{newest.chunks} buffered chunks of {newest.thread or newest.resource} were left out: "
            "their messages are raw here, and are observed anew."
        )
    if not any(each.text.strip() for each in generations):
        return
    if newest.thread is None and _is_shared(mine[0].thread.resource_id):
        report.notes.append(
            f"{newest.resource} has a shared memory here already: Mastra's was left out, and the "
            "messages of its new threads are raw here, and are observed anew."
        )
        return
    memory = _Memory(mine, newest)
    # Where no message is left that a generation could rest on, only the newest is kept.
    shown = generations if memory.cover(generations) else [newest]
    for number, generation in enumerate(shown, 1):
        memory.show(number, generation)
    memory.finish(len(shown))
    report.counts["memories"] += 1
    report.counts["generations"] += len(shown)
    report.counts["lines"] += memory.lines


def _is_shared(resource_id: int) -> bool:
    """Tell whether a resource has an open memory for all of its conversations."""
    shared = MemoryRecord.objects.filter(resource=resource_id, scope=MemoryRecord.Scope.RESOURCE)
    return shared.filter(closed_at__isnull=True).exists()


class _Memory:
    """Write one record: what its threads are covered by, and each generation as a revision."""

    def __init__(self, mine: Sequence[_Stored], newest: SourceRecord) -> None:
        self._mine = mine
        self._newest = newest
        resource, shared = mine[0].thread.resource, newest.thread is None
        scope = MemoryRecord.Scope.RESOURCE if shared else MemoryRecord.Scope.THREAD
        if shared:
            Resource.objects.filter(pk=resource.pk).update(scope=scope)
        thread = None if shared else mine[0].thread
        self._record = MemoryRecord.objects.create(scope=scope, resource=resource, thread=thread)
        self._zone = ZoneInfo(resource.time_zone)
        self._covering: dict[UUID, Observation] = {}
        self._sources: list[Observation] = []
        self._tokens = 0
        self.lines = 0

    def cover(self, generations: Sequence[SourceRecord]) -> bool:
        """Cover what was observed of each thread, with one observation each; tell if any was."""
        for each in self._mine:
            through = each.observed_through(self._newest, generations)
            Cursor.objects.create(
                record=self._record,
                thread=each.thread,
                buffered_through=through,
                observed_through=through,
            )
            if through:
                covered = Message.objects.within(each.thread.pk, 1, through)
                self._covering[each.thread.pk] = Observation.objects.create(
                    record=self._record,
                    thread=each.thread,
                    kind=Kind.OBSERVATION,
                    first_position=covered.order_by("position").values_list("position", flat=True)[
                        0
                    ],
                    last_position=through,
                    message_tokens=sum(covered.values_list("tokens", flat=True)),
                    current_task=_hint(each, "currentTask"),
                    suggested_response=_hint(each, "suggestedResponse"),
                    place=1,
                    since=1,
                )

        self._sources = [*self._covering.values()]
        return bool(self._sources)

    def show(self, number: int, generation: SourceRecord) -> None:
        """Make a generation's lines visible in the place of those before it."""
        Line.objects.as_of(self._record.pk, number).update(until=number)
        before = self._tokens
        for owner, text in self._owners(number, generation):
            self._write(owner, text, number)
        self._tokens = tokens_at(self._record.pk, number)
        Revision.objects.create(
            record=self._record,
            number=number,
            cause=Revision.Cause.IMPORT if number == 1 else Revision.Cause.REFLECT,
            reason=f"Generation {generation.generation} of Mastra’s memory.",
            tokens_before=before,
            tokens_after=self._tokens,
            created_at=generation.created_at,
        )

    def _owners(self, number: int, generation: SourceRecord) -> Iterator[tuple[Observation, str]]:
        """Yield the rows that hold a generation, each with its part of the text."""
        if number > 1:
            yield self._reflection(number, generation), generation.text
            return
        texts: dict[UUID, list[str]] = defaultdict(list)
        nobodys: list[str] = []
        threads = {each.source.id: each.thread.pk for each in self._mine}
        for name, text in _SECTION.findall(generation.text):
            owner = self._covering.get(threads.get(name, UUID(int=0)))
            if owner is not None and owner.thread_id is not None:
                texts[owner.thread_id].append(text)
            else:
                nobodys.append(text)
        rest = "\n".join([_SECTION.sub("", generation.text), *nobodys])
        left = any(_plain(rest))
        only = self._only()
        if left and only is not None and only.thread_id is not None:
            texts[only.thread_id].append(rest)
        for thread, pieces in texts.items():
            yield self._covering[thread], "\n".join(pieces)
        if left and only is None:
            yield self._note(number), rest

    def _only(self) -> Observation | None:
        """Return the observation of the only thread, if there is but one."""
        return next(iter(self._covering.values())) if len(self._covering) == 1 else None

    def _note(self, number: int) -> Observation:
        """Return a row for text whose messages are not here."""
        return Observation.objects.create(
            record=self._record, kind=Kind.NOTE, place=number, since=number
        )

    def _reflection(self, number: int, generation: SourceRecord) -> Observation:
        at = generation.created_at
        cycle = Cycle.objects.create(
            record=self._record,
            lane=REFLECTOR_LANE,
            kind=Cycle.Kind.REFLECT,
            thread=self._record.thread,
            status=Cycle.Status.DONE,
            trigger="import",
            epoch=0,
            model="mastra",
            lease_expires_at=at,
            started_at=at,
            finished_at=at,
        )
        reflection = Observation.objects.create(
            record=self._record,
            thread=self._record.thread,
            kind=Kind.REFLECTION,
            generation=number - 1,
            place=1,
            since=number,
            cycle=cycle,
        )
        ReflectionSource.objects.bulk_create(
            ReflectionSource(reflection=reflection, observation=each) for each in self._sources
        )
        self._sources = [*self._sources, reflection]
        return reflection

    def _write(self, owner: Observation, text: str, number: int) -> None:
        tokens = 0
        for ordinal, line in enumerate(written(_plain(text), self._zone, frozenset())):
            counted = count_line(line.kind, line.text, line.said_at)
            Line.objects.create(
                observation=owner,
                ordinal=ordinal,
                kind=line.kind.value,
                said_at=line.said_at,
                text=line.text,
                tokens=counted,
                first_position=owner.first_position,
                last_position=owner.last_position,
                since=number,
            )
            tokens += counted
            self.lines += 1
        Observation.objects.filter(pk=owner.pk).update(tokens=tokens)

    def finish(self, revision: int) -> None:
        """Let the record stand at its last revision."""
        MemoryRecord.objects.filter(pk=self._record.pk).update(
            revision=revision, generation=revision - 1, created_at=self._newest.created_at
        )


def _hint(stored: _Stored, name: str) -> str:
    return str(stored.source.memory.get(name) or "")


def _plain(text: str) -> list[str]:
    bare = re.sub(r"</?thread[^>]*>", "", _BOUNDARY.sub("\n\n", text))
    return bare.strip().split("\n")
