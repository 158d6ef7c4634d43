"""Carry rows of one record over into another: for a fork, and for a change of scope.

A selection of messages is covered anew by copies of the observations that cover it. What
stands for them comes along as it is now: their visible lines, and those of the reflections
made from nothing else. A reflection that was made from more than the selection is left behind,
and the lines it had taken the place of are shown instead. Notes come along. Copies keep their
place, so that the order, and with it the Actor's request, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Observation,
    ReflectionSource,
    Revision,
)
from memory.models.cycle import REFLECTOR_LANE, observer_lane

from .sizes import tokens_at
from .standing import Standing, shown_at
from .versions import Chain, History, history_of

Kind = Observation.Kind
Stored = TypeVar("Stored", Observation, Line, Cycle)


@dataclass(frozen=True)
class Whole:
    """Hold what a record consists of, each part read when it is first asked for."""

    record_id: UUID

    @cached_property
    def rows(self) -> dict[UUID, Observation]:
        """Return all rows that were not given up, in order of their place."""
        found = Observation.objects.filter(record=self.record_id, discarded_at__isnull=True)
        ordered = found.select_related("cycle").order_by("place", "thread_id", "first_position")
        return {row.pk: row for row in ordered}

    @cached_property
    def history(self) -> History:
        """Return the lines that were ever visible."""
        return history_of(self.record_id)

    @cached_property
    def unseen(self) -> list[Line]:
        """Return the lines that never were."""
        lines = Line.objects.filter(observation__record=self.record_id, since__isnull=True)
        return list(lines)

    @cached_property
    def standing(self) -> Standing:
        """Return which rows still count."""
        return Standing(self.history, shown_at(self.rows.values()))

    @cached_property
    def sources(self) -> dict[UUID, list[UUID]]:
        """Return the sources of each reflection."""
        links = ReflectionSource.objects.filter(reflection__record=self.record_id)
        found: dict[UUID, list[UUID]] = {}
        for reflection, source in links.values_list("reflection", "observation"):
            found.setdefault(reflection, []).append(source)
        return found

    @cached_property
    def covering(self) -> dict[UUID, list[Observation]]:
        """Return the rows that cover messages, of each thread."""
        found: dict[UUID, list[Observation]] = {}
        for row in self.rows.values():
            if row.kind == Kind.OBSERVATION and row.thread_id is not None:
                found.setdefault(row.thread_id, []).append(row)
        return found

    @cached_property
    def told(self) -> set[UUID]:
        """Return the rows that have lines, visible or not."""
        lines = [chain.tip for chain in self.history.chains] + self.unseen
        return {line.observation_id for line in lines}


@dataclass(frozen=True)
class Selection:
    """Hold what of a record goes along with some observations of it.

    ``covers`` chooses the observations, ``notes`` the notes.
    """

    whole: Whole
    covers: Callable[[Observation], bool]
    notes: Callable[[Observation], bool] = lambda note: True

    @property
    def rows(self) -> dict[UUID, Observation]:
        """Return all rows of the record."""
        return self.whole.rows

    @property
    def sources(self) -> dict[UUID, list[UUID]]:
        """Return the sources of each reflection of the record."""
        return self.whole.sources

    @cached_property
    def kept(self) -> set[UUID]:
        """Return the rows that go along, reflections without anything shown of them included."""
        choose = {Kind.OBSERVATION.value: self.covers, Kind.NOTE.value: self.notes}
        kept = {pk for pk, row in self.rows.items() if row.kind in choose and choose[row.kind](row)}
        shown = [r for r in self.rows.values() if r.kind == Kind.REFLECTION and r.since is not None]
        size = -1
        while size != len(kept):
            size = len(kept)
            kept |= {row.pk for row in shown if kept.issuperset(self.sources.get(row.pk, ()))}
        return kept

    @cached_property
    def joined(self) -> set[UUID]:
        """Return the rows that a reflection which goes along was made from."""
        return {source for pk in self.kept for source in self.sources.get(pk, ())}

    @cached_property
    def lines(self) -> dict[UUID, list[Line]]:
        """Return, for each row that goes along, the lines that stand for it."""
        return self._lines_where(standing=True)

    @cached_property
    def condensed(self) -> dict[UUID, list[Line]]:
        """Return the lines that reflections which go along stand for.

        Copies of them are never shown, and wait for a selection without the reflection.
        """
        return self._lines_where(standing=False)

    def _lines_where(self, *, standing: bool) -> dict[UUID, list[Line]]:
        found: dict[UUID, list[Line]] = {}
        for line, stands in self._judged:
            if stands is standing:
                found.setdefault(line.observation_id, []).append(line)
        return found

    @cached_property
    def _judged(self) -> list[tuple[Line, bool]]:
        """Return the lines to copy, and whether each is to be shown."""
        chains = [c for c in self.whole.history.chains if c.owner.pk in self.kept]
        judged = [(chain.tip, self._stands(chain)) for chain in chains]
        unseen = (line for line in self.whole.unseen if line.observation_id in self.kept)
        return [(line, stands) for line, stands in judged if stands is not None] + [
            (line, line.observation_id not in self.joined) for line in unseen
        ]

    def _stands(self, chain: Chain) -> bool | None:
        """Tell whether a line is to be shown; None when it was taken out of sight for good."""
        if chain.visible is not None:
            return True
        by = self.whole.standing.took(chain)
        return None if by not in self.whole.standing.rows else by not in self.kept

    @cached_property
    def needed(self) -> list[Observation]:
        """Return the rows to copy, in order: without reflections that nothing is left of."""
        wanted = {pk for pk in self.kept if self.rows[pk].kind == Kind.OBSERVATION}
        wanted |= self.lines.keys()
        wanted |= {
            pk for pk in self.kept if not self.condensed.keys().isdisjoint(self.sources.get(pk, ()))
        }
        todo = list(wanted)
        while todo:
            new = set(self.sources.get(todo.pop(), ())) - wanted
            wanted |= new
            todo += new
        return [row for row in self.rows.values() if row.pk in wanted]


@dataclass
class Carrier:
    """Copy selections into a record, all shown by its revision ``number``.

    ``threads`` names the thread that each thread's rows are about there, ``place`` the place
    of a row; a note without a thread goes to ``notes_to``.
    """

    record: MemoryRecord
    number: int
    threads: Mapping[UUID, UUID]
    place: Callable[[int], int] = lambda place: place
    notes_to: UUID | None = None
    trigger: str = ""

    def carry(self, selection: Selection) -> list[Observation]:
        """Store copies of a selection's rows, lines, sources and cycles; return the rows."""
        rows = selection.needed
        cycles = self._cycles(rows)
        copies = {row.pk: self._row(row, cycles) for row in rows}
        shown = self._lines(selection.lines, copies, self.number)
        lines = shown + self._lines(selection.condensed, copies, None)
        for line in lines:
            line.observation.tokens += line.tokens
        Observation.objects.bulk_create(list(copies.values()))
        ReflectionSource.objects.bulk_create(
            [
                ReflectionSource(reflection=copies[pk], observation=copies[source])
                for pk in copies
                for source in selection.sources.get(pk, ())
            ]
        )
        Line.objects.bulk_create(lines)
        self._cursors(copies.values())
        return list(copies.values())

    def _lines(
        self,
        lines: Mapping[UUID, list[Line]],
        copies: Mapping[UUID, Observation],
        number: int | None,
    ) -> list[Line]:
        return [
            self._line(line, copies[pk], number)
            for pk in copies
            for line in sorted(lines.get(pk, ()), key=lambda line: line.ordinal)
        ]

    def _row(self, row: Observation, cycles: Mapping[UUID, Cycle]) -> Observation:
        shown = row.since is not None
        return _copy(
            row,
            record_id=self.record.pk,
            thread_id=self._thread(row),
            tokens=0,
            place=self.place(row.place) if shown and row.place is not None else None,
            since=self.number if shown else None,
            cycle_id=cycles[row.cycle_id].pk if row.cycle_id is not None else None,
        )

    def _thread(self, row: Observation) -> UUID | None:
        if row.thread_id is not None:
            return self.threads.get(row.thread_id, row.thread_id)
        return self.notes_to if row.kind == Kind.NOTE else None

    def _line(self, line: Line, copy: Observation, number: int | None) -> Line:
        return _copy(
            line,
            observation=copy,
            replaces_id=None,
            since=None if copy.since is None else number,
            until=None,
        )

    def _cycles(self, rows: Iterable[Observation]) -> dict[UUID, Cycle]:
        """Copy the cycles behind rows: what was asked and answered, but not what it cost."""
        copies = {row.cycle_id: self._cycle(row.cycle) for row in rows if row.cycle is not None}
        Cycle.objects.bulk_create(list(copies.values()))
        return {pk: copy for pk, copy in copies.items() if pk is not None}

    def _cycle(self, cycle: Cycle) -> Cycle:
        thread = None if cycle.thread_id is None else self.threads.get(cycle.thread_id)
        observes = cycle.kind in (Cycle.Kind.BUFFER, Cycle.Kind.OBSERVE)
        return _copy(
            cycle,
            record_id=self.record.pk,
            lane=observer_lane(thread) if observes and thread else REFLECTOR_LANE,
            thread_id=thread,
            trigger=self.trigger,
            epoch=0,
            input_tokens=0,
            output_tokens=0,
            cost=None,
        )

    def _cursors(self, copies: Iterable[Observation]) -> None:
        """Store where each thread's copied ranges end."""
        ends: dict[UUID, list[int]] = {}
        for row in copies:
            if row.kind == Kind.OBSERVATION and row.thread_id is not None:
                last = row.last_position or 0
                end = ends.setdefault(row.thread_id, [0, 0])
                end[0] = max(end[0], last)
                end[1] = max(end[1], last if row.since is not None else 0)
        Cursor.objects.bulk_create(
            [
                Cursor(
                    record=self.record,
                    thread_id=thread,
                    buffered_through=buffered,
                    observed_through=observed,
                )
                for thread, (buffered, observed) in sorted(ends.items())
            ]
        )


def _copy(row: Stored, **changes: Any) -> Stored:
    """Return an unsaved copy of a row under a new key, with other values."""
    fields = row._meta.concrete_fields
    values = {f.attname: getattr(row, f.attname) for f in fields if not f.primary_key}
    for name in changes:
        values.pop(f"{name}_id", None)
    return type(row)(**{**values, **changes})


def begin(record: MemoryRecord, cause: Revision.Cause, number: int, **fields: Any) -> None:
    """Record the revision that a record of copies begins with, after they are stored."""
    shown = Observation.objects.filter(record=record, kind=Kind.REFLECTION, since__isnull=False)
    record.revision, record.generation = number, shown.count()
    record.save(update_fields=["revision", "generation"])
    Revision.objects.create(
        record=record,
        number=number,
        cause=cause,
        tokens_before=0,
        tokens_after=tokens_at(record.pk, number),
        **fields,
    )
