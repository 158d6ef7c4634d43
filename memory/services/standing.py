"""Say which rows of a record still count: those that are visible, and what they stand for.

A reflection takes the place of lines. It stands for them as long as any of its own lines is
visible, or condensed by a reflection that stands. Once a restore has taken it back it stands
for nothing, although what it hid before may be out of sight for other reasons by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db.models import Q

from memory.models import Line, Observation, ReflectionSource, Revision

from .change import Change, Refused
from .versions import Chain, History, history_of

Kind = Observation.Kind


@dataclass(frozen=True)
class Standing:
    """Follow lines to the reflections that took their place.

    ``at`` names each reflection by the revision that showed it.
    """

    history: History
    at: Mapping[int, UUID]

    def took(self, chain: Chain) -> UUID | None:
        """Return the reflection that took the place of a line, if one did."""
        if chain.visible is not None:
            return None
        hidden = self.history.hidden_by(chain)
        if hidden is None or hidden.cause != Revision.Cause.REFLECT:
            return None
        return self.at.get(hidden.number)

    @cached_property
    def rows(self) -> set[UUID]:
        """Return the rows that are visible, or that a reflection which stands stands for."""
        standing = {chain.owner.pk for chain in self.history.chains if chain.visible is not None}
        size = -1
        while size != len(standing):
            size = len(standing)
            standing |= {c.owner.pk for c in self.history.chains if self.took(c) in standing}
        return standing


def shown_at(rows: Iterable[Observation]) -> dict[int, UUID]:
    """Return the reflections among some rows that were shown, by their revisions."""
    shown = (row for row in rows if row.kind == Kind.REFLECTION)
    return {row.since: row.pk for row in shown if row.since is not None}


def leaves(reflection_id: UUID) -> set[UUID]:
    """Return the rows a reflection was made from, directly or through others."""
    found: set[UUID] = set()
    todo = {reflection_id}
    while todo:
        links = ReflectionSource.objects.filter(reflection__in=todo)
        todo = set(links.values_list("observation", flat=True)) - found
        found |= todo
    return found


def resting_on(line: Line) -> Q:
    """Return the condition for lines about any message a line cites; all, when it cites none."""
    if line.first_position is None or line.last_position is None:
        return Q()
    cited = Q(first_position__lte=line.last_position, last_position__gte=line.first_position)
    return Q(first_position__isnull=True) | cited


def tells_once(now: Change, chains: Iterable[Chain]) -> None:
    """Raise Refused when lines just shown again tell what was shown again since they went.

    Of a reflection whose sources a restore brought back, that is: beside them, or beside what
    condensed them anew, it would tell the same twice. Must run inside the change, once it has
    settled.
    """
    history = history_of(now.record.pk)
    reflections = Observation.objects.filter(record=now.record, kind=Kind.REFLECTION)
    standing = Standing(history, shown_at(reflections))
    for chain in chains:
        if chain.owner.kind != Kind.REFLECTION or chain.tip.until is None:
            continue
        sources = Line.objects.filter(
            resting_on(chain.tip),
            observation__in=leaves(chain.owner.pk),
            since__gte=chain.tip.until,
            since__lt=now.number,
        )
        again = set(sources.values_list("pk", flat=True))
        shown = (c for c in history.chains if any(line.pk in again for line in c.versions))
        if any(each.visible or standing.took(each) in standing.rows for each in shown):
            raise Refused(
                "What this line condensed was shown again since, and would be told twice. "
                "Restore the revision before instead."
            )
