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

from django.db.models import Q, Sum

from memory.models import Line, Observation, ReflectionSource, Revision

from .change import Change
from .versions import Chain, History, history_of, settle

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


def seeds_of(line: Line) -> set[UUID]:
    """Return all versions of a line; of a reflection's, with the lines it rests on."""
    seeds = _versions(line)
    if line.observation.kind != Kind.REFLECTION:
        return seeds
    sources = _leaves(line.observation_id)
    resting = Q()
    if line.first_position is not None and line.last_position is not None:
        resting = Q(first_position__isnull=True) | Q(
            first_position__lte=line.last_position, last_position__gte=line.first_position
        )
    below = Line.objects.filter(resting, observation__in=sources)
    return seeds | set(below.values_list("pk", flat=True))


def _versions(line: Line) -> set[UUID]:
    found, todo = {line.pk}, {line.pk}
    while todo:
        around = Line.objects.filter(Q(replaces__in=todo) | Q(successors__in=todo))
        todo = set(around.values_list("pk", flat=True)) - found
        found |= todo
    return found


def _leaves(reflection_id: UUID) -> set[UUID]:
    """Return the rows a reflection was made from, directly or through others."""
    found: set[UUID] = set()
    todo = {reflection_id}
    while todo:
        links = ReflectionSource.objects.filter(reflection__in=todo)
        todo = set(links.values_list("observation", flat=True)) - found
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
    at = {row.since: row.pk for row in reflections.filter(since__isnull=False)}
    standing = _standing(history, at)
    back = [
        (chain, chain.tip)
        for chain in history.chains
        if chain.owner.pk not in gone
        and chain.root not in seeds
        and _by(history, chain, at) in gone & standing
    ]
    settle(now, back)
    _show_copies(now, gone & standing, seeds)


def _by(history: History, chain: Chain, at: dict[int | None, UUID]) -> UUID | None:
    """Return the reflection that took the place of a line, if one did."""
    if chain.visible is not None:
        return None
    hidden = history.hidden_by(chain, chain.tip.until or 0)
    if hidden is None or hidden.cause != Revision.Cause.REFLECT:
        return None
    return at.get(hidden.number)


def _standing(history: History, at: dict[int | None, UUID]) -> set[UUID]:
    """Return the rows that are visible, or that a visible reflection stands for."""
    standing = {chain.owner.pk for chain in history.chains if chain.visible is not None}
    size = -1
    while size != len(standing):
        size = len(standing)
        standing |= {
            chain.owner.pk for chain in history.chains if _by(history, chain, at) in standing
        }
    return standing


def _show_copies(now: Change, gone: set[UUID], seeds: set[UUID]) -> None:
    """Show lines that were copied together with the reflection that stood for them."""
    links = ReflectionSource.objects.filter(reflection__in=gone)
    freed = set(links.values_list("observation", flat=True))
    shown = ReflectionSource.objects.filter(reflection__since__isnull=False)
    others = shown.filter(observation__in=freed).exclude(reflection__in=gone)
    freed -= set(others.values_list("observation", flat=True)) | gone
    unseen = Line.objects.filter(
        observation__in=freed, observation__since__isnull=False, since__isnull=True
    )
    unseen.exclude(pk__in=seeds).update(since=now.number)


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
