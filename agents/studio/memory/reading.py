"""Read what the memory page shows, as of one revision and without a query in a loop.

The record's latest revision is read first. Everything about an older one is as it was then,
and cannot change but by erasing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import Http404

from agents.looks import last_look
from agents.page import Scene
from agents.studio.memory.asked import Asked
from agents.studio.memory.diff import DROPPED, Difference, Links, differences
from memory.models import Cycle, Line, MemoryRecord, Observation, Revision, Thread
from memory.services.look import visible_lines
from memory.services.merged import Merged, merged
from memory.services.sizes import size_of
from memory.services.written import Piece, as_seen, as_stored

Cause = Revision.Cause
Place = tuple[UUID, int]


@dataclass(frozen=True)
class Point:
    """Hold one revision in outline."""

    number: int
    tokens: int
    cause: str


@dataclass(frozen=True)
class News:
    """Name the revisions that somebody did not look at yet, and the visible lines they made."""

    revisions: frozenset[int] = frozenset()
    lines: frozenset[UUID] = frozenset()


def place_of(line: Line) -> Place:
    """Return what all versions of one line have in common: whose it is, and which."""
    return line.observation_id, line.ordinal


class Reading:
    """Read a thread's memory for its page. Raises Thread.DoesNotExist at the first look."""

    def __init__(self, thread: Thread, asked: Asked, now: datetime) -> None:
        self.thread = thread
        self.asked = asked
        self.now = now
        self.scene = Scene(thread.pk, now)
        #: Who looks, where the page is to say what is new to them.
        self.reader: Any = None

    @property
    def record(self) -> MemoryRecord | None:
        """Return the record the thread's memory is in; None before anything is remembered."""
        return self.scene.record

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone of the memory's days."""
        return self.scene.zone

    @property
    def latest(self) -> int:
        """Return the number of the latest revision."""
        return self.record.revision if self.record else 0

    @cached_property
    def number(self) -> int:
        """Return the revision shown. Raises Http404 for one there is not."""
        asked = self.asked.rev
        if asked is None:
            return self.latest
        if asked > self.latest:
            raise Http404(f"There is no revision {asked}; the latest is {self.latest}.")
        return asked

    @property
    def is_latest(self) -> bool:
        """Tell whether what is shown is what the agent sees now."""
        return self.number == self.latest

    @cached_property
    def news(self) -> News:
        """Return what is new to the reader; nothing when they look for the first time."""
        if self.reader is None or self.record is None or not self.is_latest:
            return News()
        since = last_look(self.reader, self.record.pk, self.now)
        if since is None or since >= self.latest:
            return News()
        # What somebody changed themselves is not new to them.
        newer = Revision.objects.filter(record=self.record, number__gt=since)
        by_others = newer.exclude(author=self.reader).values_list("number", flat=True)
        revisions = frozenset(by_others)
        lines = frozenset(line.pk for line in self.lines if line.since in revisions)
        return News(revisions, lines)

    @cached_property
    def outline(self) -> list[Point]:
        """Return all revisions in outline, the oldest first."""
        if self.record is None:
            return []
        rows = Revision.objects.filter(record=self.record, number__lte=self.latest)
        found = rows.order_by("number").values_list("number", "tokens_after", "cause")
        return [Point(*row) for row in found]

    @cached_property
    def reflected_at(self) -> list[int]:
        """Return the numbers of the revisions that reflections made."""
        return [point.number for point in self.outline if point.cause == Cause.REFLECT]

    def generation(self, number: int) -> int:
        """Return how many reflections had been shown by a revision."""
        return bisect_right(self.reflected_at, number)

    def beside(self, number: int) -> tuple[int | None, int | None]:
        """Return the revisions before and after one."""
        numbers = [point.number for point in self.outline]
        at = bisect_right(numbers, number)
        known = at > 0 and numbers[at - 1] == number
        before = at - 2 if known else at - 1
        return (
            numbers[before] if before >= 0 else None,
            numbers[at] if at < len(numbers) else None,
        )

    @cached_property
    def revision(self) -> Revision | None:
        """Return the revision shown; None for number 0, when nothing was remembered."""
        rows = Revision.objects.filter(record=self.record, number=self.number)
        return rows.select_related("author", "cycle", "thread").first() if self.record else None

    @cached_property
    def lines(self) -> list[Line]:
        """Return the lines visible at the revision, in order."""
        return visible_lines(self.record.pk, self.number) if self.record else []

    @cached_property
    def tokens(self) -> int:
        """Return the tokens of these lines as they are sent."""
        return size_of(self.lines, self.zone)

    @property
    def clock(self) -> datetime:
        """Return the time at which the revision is looked at: its own, unless it is the latest."""
        return self.now if self.is_latest or self.revision is None else self.revision.created_at

    @cached_property
    def pieces(self) -> list[Piece]:
        """Return the text of the revision in pieces, as it is stored or as the agent sees it."""
        if self.asked.seen == "agent":
            return as_seen(self.thread.pk, self.number, self.clock)
        return as_stored(self.lines, self.zone)

    @cached_property
    def others(self) -> dict[UUID, Thread]:
        """Return the other conversations that lines are of, in a shared memory."""
        if not self.scene.is_shared:
            return {}
        ids = {line.of_thread for line in self.lines}  # type: ignore[attr-defined]
        found = Thread.objects.filter(pk__in=ids - {None})
        return {thread.pk: thread for thread in found}

    @cached_property
    def merges(self) -> dict[UUID, Merged]:
        """Return what the reflections with visible lines made of theirs, by reflection."""
        kind = Observation.Kind.REFLECTION
        ids = {line.observation_id for line in self.lines if line.of_kind == kind}  # type: ignore[attr-defined]
        ids |= {self.newest_reflection.pk} if self.newest_reflection else set()
        rows = Observation.objects.filter(pk__in=ids).select_related("cycle") if ids else []
        return {each.reflection.pk: each for each in merged(rows)}

    @cached_property
    def newest_reflection(self) -> Observation | None:
        """Return the last reflection shown by the revision."""
        if not self.generation(self.number):
            return None
        shown = Observation.objects.filter(
            record=self.record,
            kind=Observation.Kind.REFLECTION,
            since__isnull=False,
            since__lte=self.number,
        )
        return shown.order_by("-since").first()

    @cached_property
    def stands_for(self) -> dict[Place, tuple[Line, ...]]:
        """Return the lines that each line of a reflection stands for, by its place."""
        return {
            place_of(line): each.parents[line.pk]
            for each in self.merges.values()
            for line in each.lines
            if each.parents[line.pk]
        }

    @cached_property
    def dropped(self) -> list[Line]:
        """Return what the newest reflection dropped and nobody has shown again."""
        newest = self.newest_reflection
        made = self.merges.get(newest.pk) if newest else None
        if made is None:
            return []
        visible = {place_of(line) for line in self.lines}
        found = differences(made.before, made.lines, Links(parents=made.parents))
        gone = (each.line for each in found if each.kind == DROPPED)
        return [line for line in gone if place_of(line) not in visible]

    @cached_property
    def changes(self) -> list[Difference]:
        """Return what the revision shown changed: only the lines it touched."""
        if self.record is None or not self.number:
            return []
        ended = Line.objects.filter(observation__record=self.record, until=self.number)
        old = list(ended.order_by("observation__place", "observation_id", "ordinal"))
        new = [line for line in self.lines if line.since == self.number]
        roots = {line.pk: line.replaces_id for line in new if line.replaces_id}
        parents = {pk: found for each in self.merges.values() for pk, found in each.parents.items()}
        return differences(old, new, Links(roots, parents))

    @cached_property
    def compared_with(self) -> int:
        """Return the revision that is compared with the one shown. Raises Http404."""
        asked = self.asked.with_
        if asked is None:
            return self.beside(self.number)[0] or 0
        if asked > self.latest:
            raise Http404(f"There is no revision {asked}; the latest is {self.latest}.")
        return asked

    @cached_property
    def differences(self) -> list[Difference]:
        """Return what became of the lines of the other revision."""
        if self.record is None:
            return []
        old = visible_lines(self.record.pk, self.compared_with)
        return differences(old, self.lines, Links(self._roots, self._parents))

    @cached_property
    def _roots(self) -> dict[UUID, UUID]:
        rows = Line.objects.filter(observation__record=self.record, replaces__isnull=False)
        roots: dict[UUID, UUID] = {}
        for pk, before in rows.order_by("since").values_list("pk", "replaces"):
            if before is not None:
                roots[pk] = roots.get(before, before)
        return roots

    @property
    def _parents(self) -> dict[UUID, tuple[Line, ...]]:
        between = Observation.objects.filter(
            record=self.record,
            kind=Observation.Kind.REFLECTION,
            since__gt=min(self.compared_with, self.number),
            since__lte=max(self.compared_with, self.number),
        )
        found = merged(between.select_related("cycle")) if self.reflected_at else []
        return {pk: lines for each in found for pk, lines in each.parents.items()}

    @cached_property
    def erased(self) -> list[Revision]:
        """Return the erasures since that took something of what was visible then."""
        if not any(p.cause == Cause.ERASE and p.number > self.number for p in self.outline):
            return []
        then = next((p.tokens for p in self.outline if p.number == self.number), 0)
        if then <= self.tokens:
            return []
        later = Revision.objects.filter(
            record=self.record, cause=Cause.ERASE, number__gt=self.number
        )
        return list(later.select_related("author").order_by("number"))

    @cached_property
    def cycle(self) -> Cycle | None:
        """Return the cycle that was chosen. Raises Http404 for one of another memory."""
        if self.asked.cycle is None:
            return None
        found = Cycle.objects.filter(record=self.record, pk=self.asked.cycle) if self.record else []
        for cycle in found:
            return cycle
        raise Http404("There is no such cycle.")

    @cached_property
    def running(self) -> list[Cycle]:
        """Return the cycles under way."""
        return list(Cycle.objects.running().filter(record=self.record)) if self.record else []

    def tokens_from(self, line: Line) -> int:
        """Return the tokens of memory from a line on, which a prompt cache loses with it."""
        places = [place_of(each) for each in self.lines]
        at = places.index(place_of(line)) if place_of(line) in places else 0
        return size_of(self.lines[at:], self.zone)

    def position_of(self, line: Line) -> int:
        """Return before which visible line one stands, or stood while it was visible."""
        places: Sequence[Any] = [place_of(each) for each in self.lines]
        if place_of(line) in places:
            return places.index(place_of(line))
        if self.record is None or line.until is None:
            return 0
        then = [place_of(each) for each in visible_lines(self.record.pk, line.until - 1)]
        above = then[: then.index(place_of(line))] if place_of(line) in then else []
        return next((places.index(p) + 1 for p in reversed(above) if p in places), 0)
