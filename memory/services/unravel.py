"""Take lines out of a record for good, with what was made from them.

A reflection that was made from an erased line may hold its text in any of its own: it goes
whole, and so do the reflections made from it. What else it had taken the place of is shown
again, so that nothing but the erased is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from django.db.models import Q, QuerySet, Sum

from memory.models import Line, MemoryRecord, Observation, ReflectionSource, Revision

from .change import Change
from .standing import Standing, leaves, resting_on, shown_at
from .versions import History, history_of, settle

Kind = Observation.Kind


class Range(Protocol):
    """Describe messages of a thread."""

    @property
    def thread(self) -> UUID: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...


def overlapping(record_id: UUID, spans: Iterable[Range]) -> set[UUID]:
    """Return a record's lines, visible or not, that rest on any of some messages.

    A line that cites nothing rests on all that its observation covers.
    """
    resting = Q(pk__in=[])
    for span in spans:
        cited = Q(first_position__lte=span.last, last_position__gte=span.first)
        covered = Q(
            first_position__isnull=True,
            observation__first_position__lte=span.last,
            observation__last_position__gte=span.first,
        )
        resting |= Q(observation__thread=span.thread) & (cited | covered)
    kinds = (Kind.OBSERVATION, Kind.DISCARDED)
    lines = Line.objects.filter(resting, observation__record=record_id, observation__kind__in=kinds)
    return set(lines.values_list("pk", flat=True))


def everywhere(line: Line) -> dict[UUID, set[UUID]]:
    """Return the lines that go with a line, by the record they are in.

    All its versions and copies, which are in forks, and where memory was of another scope; of a
    reflection's line, also versions and copies of the lines it rests on.
    """
    same = _with_copies({line.pk})
    below: set[UUID] = set()
    for each in Line.objects.filter(pk__in=same).select_related("observation"):
        if each.observation.kind == Kind.REFLECTION:
            sources = leaves(each.observation_id)
            rests = Line.objects.filter(resting_on(each), observation__in=sources)
            below |= set(rests.values_list("pk", flat=True))
    lines = Line.objects.filter(pk__in=same | _with_copies(below))
    found: dict[UUID, set[UUID]] = {}
    for record, pk in lines.values_list("observation__record", "pk"):
        found.setdefault(record, set()).add(pk)
    return found


def _with_copies(pks: set[UUID]) -> set[UUID]:
    """Return all versions of lines, and all versions of what was copied from any, or they from."""
    known: set[UUID] = set()
    todo = versions_of(pks)
    while todo:
        known |= todo
        lines = Line.objects.filter(pk__in=todo).select_related("observation__cycle")
        copies = {copy.pk for owner, texts in _by_owner(lines) for copy in _copies(owner, texts)}
        todo = versions_of(copies) - known
    return known


def _by_owner(lines: Iterable[Line]) -> Iterable[tuple[Observation, set[str]]]:
    """Return the texts of each row that lines are of."""
    owners: dict[UUID, tuple[Observation, set[str]]] = {}
    for line in lines:
        owners.setdefault(line.observation_id, (line.observation, set()))[1].add(line.text)
    return owners.values()


def _copies(owner: Observation, texts: set[str]) -> QuerySet[Line]:
    """Return the lines in other records that were copied from a row's, or that row from.

    What a model wrote in the same call about the same messages, or a person noted, word for word.
    """
    same: dict[str, object] = {
        f"observation__{name}": getattr(owner, name)
        for name in ("kind", "first_position", "last_position")
    }
    if owner.cycle is None:
        same |= {"observation__cycle": None}
    else:
        same |= {"observation__cycle__call": owner.cycle.call}
    resource = MemoryRecord.objects.filter(pk=owner.record_id).values("resource")
    found = Line.objects.filter(text__in=texts, observation__record__resource__in=resource, **same)
    return found.exclude(observation__record=owner.record_id)


def versions_of(pks: set[UUID]) -> set[UUID]:
    """Return all versions of lines."""
    found, todo = set(pks), set(pks)
    while todo:
        around = Line.objects.filter(Q(replaces__in=todo) | Q(successors__in=todo))
        todo = set(around.values_list("pk", flat=True)) - found
        found |= todo
    return found


def unravel(seeds: set[UUID], now: Change) -> Counter[str]:
    """Destroy lines and the reflections made from them; return how many of each.

    What else those reflections stood for is shown again by the same change.
    """
    rows = set(Line.objects.filter(pk__in=seeds).values_list("observation", flat=True).distinct())
    gone = _made_from(rows)
    if gone:
        _show_again(now, history_of(now.record.pk), gone, seeds)
    doomed = Line.objects.filter(Q(pk__in=seeds) | Q(observation__in=gone))
    counts = Counter({"lines": doomed.count(), "reflections": len(gone)})
    touched = rows | gone
    _empty_reasons(now.record.pk, doomed.values_list("since", "until"))
    doomed.delete()
    _recount(touched)
    return counts


def _made_from(rows: set[UUID]) -> set[UUID]:
    """Return the reflections that any of some rows went into, directly or through others."""
    found: set[UUID] = set()
    todo = rows
    while todo:
        links = ReflectionSource.objects.filter(observation__in=todo)
        todo = set(links.values_list("reflection", flat=True)) - found
        found |= todo
    return found


def _show_again(now: Change, history: History, gone: set[UUID], seeds: set[UUID]) -> None:
    """Show the lines that reflections stood for until now, but for what is erased."""
    reflections = Observation.objects.filter(record=now.record, kind=Kind.REFLECTION)
    standing = Standing(history, shown_at(reflections))
    undone = gone & standing.rows
    back = [
        (chain, chain.tip)
        for chain in history.chains
        if chain.owner.pk not in gone and chain.root not in seeds and standing.took(chain) in undone
    ]
    settle(now, back)
    _show_copies(now, gone, seeds, standing.rows)


def _show_copies(now: Change, gone: set[UUID], seeds: set[UUID], standing: set[UUID]) -> None:
    """Show lines that were copied together with a reflection that stood for them.

    Not where one that still stands does so as well.
    """
    unseen = Line.objects.filter(
        observation__record=now.record, observation__since__isnull=False, since__isnull=True
    )
    hidden = set(unseen.values_list("observation", flat=True))
    links = ReflectionSource.objects.filter(reflection__record=now.record)
    sources = [link for link in links.values_list("reflection", "observation") if link[1] in hidden]
    standing = set(standing)
    size = -1
    while size != len(standing):
        size = len(standing)
        standing |= {source for reflection, source in sources if reflection in standing}
    freed = {source for reflection, source in sources if reflection in standing & gone}
    freed -= {source for reflection, source in sources if reflection in standing - gone} | gone
    unseen.filter(observation__in=freed).exclude(pk__in=seeds).update(since=now.number)


def _empty_reasons(record_id: UUID, spans: Iterable[tuple[int | None, int | None]]) -> None:
    """Take away what people said of erased lines."""
    numbers = {number for span in spans for number in span if number is not None}
    said = Revision.objects.filter(record=record_id, number__in=numbers)
    said.exclude(cause=Revision.Cause.ERASE).exclude(reason="").update(reason="")


def _recount(rows: set[UUID]) -> None:
    for pk in rows:
        written = Line.objects.filter(observation=pk, replaces__isnull=True)
        total = written.aggregate(total=Sum("tokens"))["total"] or 0
        Observation.objects.filter(pk=pk).update(tokens=total)
