"""Carry out what was asked for in a lab, step by step, through the services the pages use.

Steps are rows: asking for one writes it, a wake-up has it done, in order. A run that nobody
finished, since its process died, is told as failed and the steps after it are left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents import words
from agents.lab import checks
from agents.lab.checks import at_once
from agents.lab.events import LabMoved
from agents.lab.faults import SAID, fill, switch
from agents.lab.matrix import Cell, Fact, Read, Verdict, judge_one, plain
from agents.lab.models import Entry, Lab, Pane
from agents.lab.requests import facts_of, reader, seats_of
from agents.lab.rest import rest
from agents.lab.scenario import step_of
from agents.lab.spent import why_no_more
from agents.lab.steps import (
    Activate,
    Bleed,
    Broadcast,
    Buffer,
    Check,
    Collide,
    Crash,
    Edit,
    Expect,
    Fill,
    Note,
    Observe,
    Reflect,
    Rest,
    Say,
    Step,
    Switch,
    Wait,
)
from agents.models import Turn
from agents.services.send import BadPrompt, send
from agents.services.turn import run_turns
from memory.dispatch import Switch as Dispatch
from memory.models import Cycle, Line, MemoryRecord, Thread
from memory.publish import publish
from memory.services import operate
from memory.services.change import Refused
from memory.services.cycles import Resolve, resolve_model
from memory.services.due import run_due
from memory.services.edit import edit
from memory.services.look import look
from memory.services.note import note

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1
LOST_AFTER = timedelta(minutes=11)

runs = Dispatch()

Reading = Callable[[Lab], Read]


@dataclass(frozen=True)
class Outcome:
    """Say what came of a step."""

    state: Entry.State
    text: str


class Failed(Exception):
    """Say in a sentence why a step could not be carried out."""


def ask(lab: Lab, steps: Iterable[Step]) -> None:
    """Write steps into the run log and wake whoever carries them out."""
    with transaction.atomic():
        Entry.objects.bulk_create([Entry(lab=lab, step=step.written()) for step in steps])
        tell(lab)
        runs.dispatch(lab.pk)


def skip(lab: Lab) -> int:
    """Leave out the steps that nobody has begun; return how many."""
    left = lab.entries.waiting().update(
        state=Entry.State.SKIPPED, text="left out", finished_at=timezone.now()
    )
    tell(lab)
    return left


def tell(lab: Lab) -> None:
    """Tell the open pages of a lab that its run log moved."""
    thread = lab.panes.values_list("thread", flat=True).first()
    if thread is not None:
        publish(LabMoved(thread=thread))


async def run_lab(
    lab_id: UUID, *, resolve: Resolve = resolve_model, reading: Reading = reader
) -> int:
    """Carry out the steps that wait; return how many failed. A step that cannot be done ends it."""
    failed = 0
    while (entry := await sync_to_async(_take)(lab_id)) is not None:
        outcome, goes_on = await _outcome(entry, resolve, reading)
        failed += outcome.state == Entry.State.FAILED
        await sync_to_async(_finish)(entry, outcome, goes_on)
    return failed


async def _outcome(entry: Entry, resolve: Resolve, reading: Reading) -> tuple[Outcome, bool]:
    try:
        step = step_of(entry.step or {})
        if step.asks and (why := await sync_to_async(why_no_more)(entry.lab)):
            raise Failed(why)
        return await Performer(entry.lab, resolve, reading).perform(step), True
    except (Failed, Refused, BadPrompt) as refused:
        return Outcome(Entry.State.FAILED, str(refused)), False
    except Exception as error:
        # Whatever fails ends the lab, not its runner, and is told beside the step.
        logger.exception("A step of lab %s failed.", entry.lab_id)
        return Outcome(Entry.State.FAILED, f"This went wrong: {error}"), False


def _take(lab_id: UUID) -> Entry | None:
    """Begin the next step; None when there is none, or another process is at one."""
    entries = Entry.objects.filter(lab=lab_id)
    lost = entries.running().filter(started_at__lt=timezone.now() - LOST_AFTER)
    if lost.update(state=Entry.State.FAILED, text="interrupted", finished_at=timezone.now()):
        entries.waiting().update(state=Entry.State.SKIPPED, text="left out")
    entry = entries.waiting().select_related("lab").first()
    if entry is None:
        return None
    mine = Entry.objects.filter(pk=entry.pk, state=Entry.State.WAITING)
    try:
        with transaction.atomic():
            begun = mine.update(state=Entry.State.RUNNING, started_at=timezone.now())
            tell(entry.lab)
    except IntegrityError:
        return None
    return entry if begun else None


def _finish(entry: Entry, outcome: Outcome, goes_on: bool) -> None:
    with transaction.atomic():
        Entry.objects.filter(pk=entry.pk).update(
            state=outcome.state, text=outcome.text, finished_at=timezone.now()
        )
        if not goes_on:
            skip(entry.lab)
        tell(entry.lab)


class Performer:
    """Carry out the steps of one lab."""

    def __init__(self, lab: Lab, resolve: Resolve, reading: Reading) -> None:
        self.lab = lab
        self.resolve = resolve
        self.reading = reading

    async def perform(self, step: Step) -> Outcome:
        """Carry out a step. Raises Failed, Refused or BadPrompt with a sentence."""
        match step:
            case Say():
                return await sync_to_async(self.say)(step)
            case Broadcast():
                return await self.broadcast(step)
            case Wait():
                return await self.wait(step)
            case Observe() | Buffer() | Activate() | Reflect():
                return await self.operate(step)
            case Crash():
                return await self.crash(step)
            case Collide():
                return await self.collide(step)
            case Check():
                return await sync_to_async(self.check)(step)
            case Bleed():
                return await sync_to_async(self.bleed)(step)
            case Edit():
                return await sync_to_async(self.edit)(step)
            case Note():
                return await sync_to_async(self.note)(step)
            case Fill():
                return await sync_to_async(self.fill)(step)
            case Rest():
                return await sync_to_async(self.rest)(step)
            case Switch():
                return await sync_to_async(self.switch)(step)
            case Expect():
                return await sync_to_async(self.expect)(step)
        raise Failed(f"Nobody knows how to {step.name}.")

    def say(self, step: Say) -> Outcome:
        """Send a message as the pane's person."""
        speak(self._pane(step.pane), step.text)
        return Outcome(Entry.State.DONE, "sent")

    async def broadcast(self, step: Broadcast) -> Outcome:
        """Send a message in several panes, one after another or all at the same instant."""
        panes = await sync_to_async(self._panes)(step.panes)
        names = ", ".join(pane.letter for pane in panes)
        if not step.at_once:
            for pane in panes:
                await sync_to_async(speak)(pane, step.text)
            return Outcome(Entry.State.DONE, f"sent to {names}")
        await at_once([partial(speak, pane, step.text) for pane in panes])
        return Outcome(Entry.State.DONE, f"sent to {names} at the same instant")

    async def wait(self, step: Wait) -> Outcome:
        """Wait until the lab is quiet."""
        threads = await sync_to_async(self._threads)()
        if not await settle(threads, seconds=step.seconds, resolve=self.resolve):
            raise Failed(f"The lab was still busy after {step.seconds:g} s.")
        return Outcome(Entry.State.DONE, "all quiet")

    async def operate(self, step: Observe | Buffer | Activate | Reflect) -> Outcome:
        """Do to a pane's memory what its operators can."""
        thread = (await sync_to_async(self._pane)(step.pane)).thread_id
        if isinstance(step, Activate):
            done = await operate.activate_now(thread)
        else:
            done = await _NOW[step.name](thread, resolve=self.resolve)
        if not done.well:
            raise Failed(done.why)
        before, after = done.before, done.after
        raw = f"{before.raw:,} → {after.raw:,} raw tokens"
        lines = f"{before.lines:,} → {after.lines:,} tokens of observations"
        return Outcome(Entry.State.DONE, " · ".join(filter(None, [raw, lines, done.why])))

    def edit(self, step: Edit) -> Outcome:
        """Give a visible line another text, as the pane's person."""
        pane = self._pane(step.pane)
        line = self._line(pane, step.line)
        edit(line.pk, step.text, author=pane.person, reason="In a lab")
        return Outcome(Entry.State.DONE, f"“{line.text}” says “{step.text}” now")

    def note(self, step: Note) -> Outcome:
        """Write a note into the pane's memory, as its person."""
        pane = self._pane(step.pane)
        record = _record(pane)
        note(record.pk, step.text, thread_id=pane.thread_id, author=pane.person)
        return Outcome(Entry.State.DONE, f"noted “{step.text}”")

    def fill(self, step: Fill) -> Outcome:
        """Store filler text in a pane; not while it is answered, whose messages come between."""
        pane = self._pane(step.pane)
        if busy([pane.thread_id]):
            raise Failed("Something is answered or observed there: wait first, then fill.")
        fill(pane, step.messages)
        return Outcome(Entry.State.DONE, f"{step.messages} messages of filler")

    def rest(self, step: Rest) -> Outcome:
        """Let time pass for all panes; not while one is answered, which would begin in the past."""
        if busy(self._threads()):
            raise Failed("Something is answered or observed: wait first, then rest.")
        time = timedelta(minutes=step.minutes)
        rest(self.lab, time)
        return Outcome(Entry.State.DONE, f"it is {words.later(time)} now")

    def switch(self, step: Switch) -> Outcome:
        """Have parts of a pane work as they should, or not."""
        pane = self._pane(step.pane)
        for part, how in step.parts.items():
            switch(pane, part, how)
        said = ", ".join(f"the {part} {SAID[how]}" for part, how in step.parts.items())
        return Outcome(Entry.State.DONE, f"{said} from now on")

    def expect(self, step: Expect) -> Outcome:
        """Look into the pane's next request."""
        check, text = step.check
        cell = verdict(self.lab, step.pane, text, self.reading(self.lab))
        return _judged(*judged(check, cell))

    async def crash(self, step: Crash) -> Outcome:
        """Let an observation die as with its process; whoever comes next finds its lapsed lease."""
        pane = await sync_to_async(self._pane)(step.pane)
        if not await checks.died(pane.thread_id):
            raise Failed(
                f"Nothing of pane {step.pane} could be observed, so nobody died. Fill it first."
            )
        return Outcome(Entry.State.DONE, "the process that observed died; its lease has lapsed")

    async def collide(self, step: Collide) -> Outcome:
        """Change one line twice at the same instant."""
        pane = await sync_to_async(self._pane)(step.pane)
        line = await sync_to_async(self._line)(pane, step.line)
        tries = [checks.Try(line.pk, text, pane.person) for text in step.texts]
        await at_once(tries)
        return _judged(*checks.one_won(tries))

    def check(self, step: Check) -> Outcome:
        """Look into the rows of the pane's memory."""
        return _judged(*checks.sound(_record(self._pane(step.pane)).pk))

    def bleed(self, step: Bleed) -> Outcome:
        """Look into the pane's next request for what another conversation is at."""
        seat = next(seat for seat in seats_of(self.lab) if seat.pane == step.pane)
        at = checks.at_work(self._pane(step.by).thread_id)
        return _judged(*checks.led(step.by, at, self.reading(self.lab)(seat)))

    def _pane(self, letter: str) -> Pane:
        return next(pane for pane in self._panes([letter]))

    def _panes(self, letters: Sequence[str]) -> list[Pane]:
        panes = self.lab.panes.select_related("lab", "person", "resource", "thread")
        found = [pane for pane in panes if not letters or pane.letter in letters]
        if missing := set(letters) - {pane.letter for pane in found}:
            raise Failed(f"There is no pane {', '.join(sorted(missing))}.")
        return found

    def _threads(self) -> list[UUID]:
        return list(dict.fromkeys(self.lab.panes.values_list("thread", flat=True)))

    def _line(self, pane: Pane, text: str) -> Line:
        record = _record(pane)
        for line in Line.objects.as_of(record.pk, record.revision).in_order():
            if plain(text) in plain(line.text):
                return line
        raise Failed(f"No visible line of pane {pane.letter} contains “{text}”.")


def _judged(passed: bool, said: str) -> Outcome:
    return Outcome(Entry.State.PASSED if passed else Entry.State.FAILED, said)


_NOW: dict[str, Callable[..., Awaitable[operate.Outcome]]] = {
    "observe": operate.observe_now,
    "buffer": operate.buffer_now,
    "reflect": operate.reflect_now,
}


def _record(pane: Pane) -> MemoryRecord:
    view = look(pane.thread_id)
    if view is None:
        raise Failed(f"The conversation of pane {pane.letter} does not remember.")
    return view.record


def speak(pane: Pane, text: str, *, key: UUID | None = None) -> Turn:
    """Queue a message in a pane as its person. Raises BadPrompt."""
    return send(pane.thread_id, text, key=key, author=pane.person)


def verdict(lab: Lab, pane: str, text: str, read: Read) -> Cell:
    """Return the verdict about a text in a pane of a lab."""
    known = [fact for fact in facts_of(lab) if plain(fact.text) == plain(text)]
    fact = known[0] if known else Fact(text)
    return judge_one(fact, pane, seats_of(lab), read)


_EXPECTED = {"isolated": Verdict.ISOLATED, "shared": Verdict.SHARED}


def judged(check: str, cell: Cell) -> tuple[bool, str]:
    """Return whether a check holds for a cell, and why in words."""
    sent = cell.sent
    where = (
        f" ({', '.join(dict.fromkeys(found.place for found in cell.found))})" if cell.found else ""
    )
    if check in _EXPECTED:
        passed = cell.verdict is _EXPECTED[check]
    else:
        passed = sent is (check == "contains")
        said = "is in" if sent else "is not in"
        return passed, f"“{cell.fact}” {said} the next request of {cell.pane}{where}"
    return passed, f"“{cell.fact}” in {cell.pane}: {cell.verdict.value}{where}"


async def settle(
    threads: Sequence[UUID], *, seconds: float, resolve: Resolve = resolve_model
) -> bool:
    """Run what waits and what is due in threads until nothing is; return False when it is late.

    Beside a server that does the same, each thing is done by whoever comes first.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        await asyncio.gather(*(run_turns(thread, resolve=resolve) for thread in threads))
        ran = [await run_due(thread, resolve=resolve) for thread in threads]
        if not any(ran) and not await sync_to_async(busy)(threads):
            return True
        if loop.time() > until:
            return False
        await asyncio.sleep(POLL_SECONDS)


def busy(threads: Sequence[UUID]) -> bool:
    """Tell whether anything is answered, observed or reflected in threads or their memory."""
    going = (Turn.Status.WAITING, Turn.Status.RUNNING)
    if Turn.objects.filter(thread__in=threads, status__in=going).exists():
        return True
    resources = Thread.objects.filter(pk__in=threads).values("resource")
    return Cycle.objects.running().filter(record__resource__in=resources).exists()
