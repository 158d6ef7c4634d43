"""Read what the page of a lab shows: its panes, memories, verdicts and run log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from agents import costs, gauges, live, panel, words
from agents.access import threads_for
from agents.lab.faults import faults_of
from agents.lab.matrix import Cell, Row, Verdict, judge
from agents.lab.models import Entry, Lab, Pane
from agents.lab.requests import facts_of, reader, seats_of, sizes
from agents.lab.spent import cap_of, spent_on
from agents.lines import LineShown, line_shown
from agents.log import Entry as LogEntry
from agents.log import log_of
from agents.page import Scene
from memory.models import MemoryRecord, Thread

LATEST = 40
MOST_LINES = 60
MOST_ENTRIES = 200

#: The word that styles a verdict; the page prints the verdict itself.
LOOKS = {
    Verdict.LEAK: "failed",
    Verdict.OWN: "activated",
    Verdict.SHARED: "activated",
    Verdict.ISOLATED: "observing",
}


@dataclass(frozen=True)
class PaneShown:
    """Show one pane."""

    letter: str
    person: str
    resource: str
    shares: bool
    thread: Thread
    entries: Sequence[LogEntry]
    draft: str
    panel: gauges.Panel
    doing: str
    waiting: int
    request: str
    twins: str
    faults: str

    @property
    def key(self) -> str:
        """Return what the ids of its elements begin with."""
        return f"pane-{self.letter.lower()}"


@dataclass(frozen=True)
class Origin:
    """Show the lines of a memory that come from one conversation."""

    title: str
    panes: str
    lines: Sequence[LineShown]


@dataclass(frozen=True)
class Strip:
    """Show one memory of a lab and who shares it."""

    key: str
    name: str
    shares: bool
    panes: str
    revision: int
    tokens: str
    origins: Sequence[Origin]
    more: int
    running: Sequence[panel.Operation]

    @property
    def several(self) -> bool:
        """Tell whether more than one pane has it."""
        return "," in self.panes


@dataclass(frozen=True)
class CellShown:
    """Show one verdict and what it rests on."""

    cell: Cell
    look: str
    places: str


@dataclass(frozen=True)
class RowShown:
    """Show one fact's verdicts; ``number`` is its place among the lab's facts."""

    row: Row
    number: int
    said_in: str
    cells: Sequence[CellShown]


@dataclass(frozen=True)
class Access:
    """Show whether a person may open the conversations of the lab."""

    person: str
    opens: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Did:
    """Show one step of the run log."""

    entry: Entry
    step: str
    took: str


class Bench:
    """Read a lab for its page; each region reads only what it shows."""

    def __init__(self, lab: Lab, now: datetime) -> None:
        self.lab = lab
        self.now = now

    @cached_property
    def panes(self) -> list[Pane]:
        """Return the panes with their people, resources and threads."""
        return list(self.lab.panes.select_related("person", "resource", "thread__resource"))

    @cached_property
    def scenes(self) -> dict[UUID, Scene]:
        """Return what the chat page reads, by thread."""
        return {pane.thread_id: Scene(pane.thread_id, self.now) for pane in self.panes}

    @cached_property
    def shown(self) -> list[PaneShown]:
        """Return the panes as the page shows them."""
        return [self._pane(pane) for pane in self.panes]

    def _pane(self, pane: Pane) -> PaneShown:
        scene = self.scenes[pane.thread_id]
        twins = [each.letter for each in self._of(pane.thread_id) if each is not pane]
        running = scene.running_turn is not None
        return PaneShown(
            letter=pane.letter,
            person=pane.person.first_name,
            resource=pane.resource.name,
            shares=pane.resource.scope == MemoryRecord.Scope.RESOURCE,
            thread=pane.thread,
            entries=log_of(scene).entries[-LATEST:],
            draft=live.draft_of(scene)["draft"] if running else "",
            panel=_apart(gauges.panel_of(scene), pane.letter),
            doing=panel.at_work(scene) if running else "",
            waiting=len(scene.waiting_turns),
            request=_sizes(pane.thread_id),
            twins=", ".join(twins),
            faults=faults_of(scene),
        )

    def _of(self, thread_id: UUID) -> list[Pane]:
        return [pane for pane in self.panes if pane.thread_id == thread_id]

    @cached_property
    def strips(self) -> list[Strip]:
        """Return the memories of the lab, each once, in the order of the panes."""
        found: dict[UUID, Strip] = {}
        for pane in self.panes:
            record = self.scenes[pane.thread_id].record
            if record is not None and record.pk not in found:
                found[record.pk] = self._strip(record, pane)
        return list(found.values())

    def _strip(self, record: MemoryRecord, pane: Pane) -> Strip:
        scene = self.scenes[pane.thread_id]
        shares = record.thread_id is None
        sharing = [p for p in self.panes if p.resource_id == pane.resource_id]
        mine = sharing if shares else self._of(pane.thread_id)
        return Strip(
            key=pane.letter.lower(),
            name=pane.resource.name if shares else f"{pane.resource.name} / {pane.thread}",
            shares=shares,
            panes=", ".join(each.letter for each in mine),
            revision=record.revision,
            tokens=words.tokens(scene.line_tokens),
            origins=list(self._origins(scene)),
            more=max(0, len(scene.lines) - MOST_LINES),
            running=panel.work_of(scene).running,
        )

    def _origins(self, scene: Scene) -> Iterator[Origin]:
        by_thread: dict[UUID | None, list[LineShown]] = {}
        titles: dict[UUID | None, str] = {None: "Several conversations"}
        for line in scene.lines[:MOST_LINES]:
            of = line.observation.thread
            titles[of.pk if of else None] = str(of) if of else titles[None]
            by_thread.setdefault(of.pk if of else None, []).append(line_shown(line, scene.zone))
        for thread, lines in by_thread.items():
            panes = [pane.letter for pane in self.panes if pane.thread_id == thread]
            yield Origin(titles[thread], ", ".join(panes), lines)

    @cached_property
    def rows(self) -> list[RowShown]:
        """Return the verdicts about every fact in every pane."""
        rows = judge(facts_of(self.lab), seats_of(self.lab), reader(self.lab))
        return [_row(number, row) for number, row in enumerate(rows)]

    @property
    def verdict(self) -> str:
        """Return what the matrix says, in a sentence."""
        if not self.rows:
            return "No facts to look for yet. Add a word that somebody says in one pane."
        leaks = [
            cell for row in self.rows for cell in row.row.cells if cell.verdict is Verdict.LEAK
        ]
        if leaks:
            told = ", ".join(f"“{cell.fact}” in {cell.pane}" for cell in leaks)
            return f"{len(leaks)} leak{'' if len(leaks) == 1 else 's'}: {told}."
        unsaid = sum(not row.row.said_in for row in self.rows)
        rest = f" {unsaid} of them nobody has said yet." if unsaid else ""
        facts = "fact" if len(self.rows) == 1 else "facts"
        return f"No leak: {len(self.rows)} {facts} looked for in {len(self.panes)} panes.{rest}"

    @property
    def leaks(self) -> bool:
        """Tell whether anything leaks."""
        return any(row.row.leaks for row in self.rows)

    @cached_property
    def access(self) -> list[Access]:
        """Return who may open which conversation, as every page decides it."""
        people = {pane.person_id: pane.person for pane in self.panes}
        return [self._access(person) for person in people.values()]

    def _access(self, person: Any) -> Access:
        mine = [pane.resource_id for pane in self.panes if pane.person_id == person.pk]
        visible = threads_for(person, lab=True).filter(pk__in=self.scenes)
        seen = set(visible.values_list("pk", flat=True))
        return Access(
            person.first_name,
            [_opens(pane.thread_id in seen, pane.resource_id in mine) for pane in self.panes],
        )

    @cached_property
    def log(self) -> list[Did]:
        """Return the newest steps, in order."""
        newest = list(self.lab.entries.order_by("-pk")[:MOST_ENTRIES])
        return [_did(entry) for entry in reversed(newest)]

    @property
    def budget(self) -> str:
        """Return what the lab has cost of what it may; empty without a cap."""
        cap = cap_of(self.lab)
        return "" if cap is None else f"{spent_on(self.lab)} of {costs.words(cap)}"

    @property
    def progress(self) -> dict[str, Any]:
        """Return how far the run is and what came of it."""
        states = [did.entry.state for did in self.log]
        left = sum(state in (Entry.State.WAITING, Entry.State.RUNNING) for state in states)
        counts = {state.value: states.count(state) for state in Entry.State}
        return {"left": left, "total": len(states), **counts, "say": _run_in_words(left, counts)}


def _run_in_words(left: int, counts: dict[str, int]) -> str:
    if left:
        return f"Running: {left} step{'' if left == 1 else 's'} to go"
    if counts["failed"]:
        return f"{counts['failed']} failed, {counts['passed']} passed"
    return f"All {counts['passed']} checks passed" if counts["passed"] else ""


def _apart(shown: gauges.Panel, letter: str) -> gauges.Panel:
    """Return gauges whose ids differ from those of other panes."""
    apart = (replace(g, key=f"{g.key}-{letter.lower()}") for g in shown.gauges)
    return replace(shown, gauges=tuple(apart))


def _sizes(thread_id: UUID) -> str:
    found = sizes(thread_id)
    parts = [f"{name} {words.tokens(tokens)}" for name, tokens in found.items()]
    return " · ".join(parts) if parts else "empty"


def _row(number: int, row: Row) -> RowShown:
    return RowShown(
        row=row,
        number=number,
        said_in=", ".join(row.said_in) or "nobody yet",
        cells=[_cell(cell) for cell in row.cells],
    )


def _cell(cell: Cell) -> CellShown:
    places = dict.fromkeys(found.place for found in cell.found)
    return CellShown(cell, LOOKS.get(cell.verdict, ""), ", ".join(places))


def _opens(may: bool, member: bool) -> tuple[str, str]:
    if may:
        return ("may open it", "activated") if member else ("leak: may open it", "failed")
    return ("shut out, though a member", "failed") if member else ("shut out", "observing")


def _did(entry: Entry) -> Did:
    took = ""
    if entry.started_at and entry.finished_at:
        took = words.lasted(entry.finished_at - entry.started_at)
    return Did(entry, in_words(entry.step) if entry.step else "–", took)


def in_words(step: dict[str, Any]) -> str:
    """Return a step on one line: expect C isolated “Ruth”."""
    ((name, fields),) = step.items()
    return " ".join([name, *_fields(fields or {})])


def _fields(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if name == "pane":
            yield str(value)
        elif name == "panes":
            yield ", ".join(value)
        elif name == "texts":
            yield " against ".join(f"“{each}”" for each in value)
        elif name == "seconds":
            yield f"at most {value:g} s"
        elif value is True:
            yield name.replace("_", " ")
        else:
            yield f"“{value}”" if name in ("text", "line") else f"{name} “{value}”"
