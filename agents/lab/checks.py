"""Try a pane's memory hard, and look into its rows for what that did to it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.lab.matrix import Place, plain
from agents.om.turns import running_turns
from memory.models import Cycle, Line
from memory.services import operate
from memory.services.change import Stale
from memory.services.edit import edit
from memory.services.look import look
from memory.verify import Report, verify

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Verdict = tuple[bool, str]

BARRIER_SECONDS = 5.0
DIES_AFTER = 10.0
MOST_TOLD = 3


async def at_once(calls: Sequence[Callable[[], Any]]) -> None:
    """Make calls at the same instant, each in a thread and with a connection of its own."""
    barrier = Barrier(len(calls))

    def meet(call: Callable[[], Any]) -> None:
        try:
            barrier.wait(BARRIER_SECONDS)
            call()
        finally:
            connections.close_all()

    await asyncio.gather(*(asyncio.to_thread(meet, call) for call in calls))


@dataclass
class Try:
    """Give a line another text once called; ``won`` is what it became, or None when refused."""

    line: UUID
    text: str
    author: User
    won: Line | None = None
    refusal: Stale | None = None

    def __call__(self) -> None:
        """Make the change, or keep why it was refused."""
        try:
            self.won = edit(self.line, self.text, author=self.author, reason="At the same instant")
        except Stale as stale:
            self.refusal = stale


def one_won(tries: Sequence[Try]) -> Verdict:
    """Tell whether exactly one try was taken, and every other one refused and told its text."""
    winners = [each for each in tries if each.won is not None]
    if len(winners) != 1:
        return False, f"{len(winners)} of {len(tries)} changes of one line were taken"
    refusals = [each.refusal for each in tries if each.won is None]
    if None in refusals:
        return False, "a change of the line was neither taken nor refused"
    if any(refusal and refusal.theirs != winners[0].text for refusal in refusals):
        return False, "a change was refused without being told what the line says now"
    return True, f"“{winners[0].text}” came first; the other was refused"


def sound(record: UUID, *, read: Callable[[UUID], Report] | None = None) -> Verdict:
    """Tell whether nothing of a memory is lost, doubled or out of order, and each lane had one."""
    report = (read or _verified)(record)
    cycles = list(Cycle.objects.filter(record=record).order_by("lane", "started_at"))
    wrong = [each.sentence for each in report.violations] + list(_together(cycles))
    if wrong:
        more = f" and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
        return False, " ".join(wrong[:MOST_TOLD]) + more
    count = len(cycles)
    runs = f"{count} run{'' if count == 1 else 's'}"
    return True, f"{runs}, one at a time; every message in order and observed once at most"


def _verified(record: UUID) -> Report:
    return verify(record=record, running=running_turns)


def _together(cycles: Iterable[Cycle]) -> Iterable[str]:
    lanes: dict[str, list[Cycle]] = defaultdict(list)
    for cycle in cycles:
        lanes[cycle.lane].append(cycle)
    for lane in lanes.values():
        for before, after in pairwise(lane):
            if before.finished_at is None or before.finished_at > after.started_at:
                yield f"Two runs of {before.get_kind_display()} were under way at once."


def at_work(thread_id: UUID) -> list[str]:
    """Return what a conversation is at: its task, and what its agent was told to do next."""
    view = look(thread_id)
    if view is None:
        return []
    return [text for text in (view.hints.current_task, view.hints.suggested_response) if text]


def led(by: str, at: Sequence[str], places: Iterable[Place]) -> Verdict:
    """Tell whether no place of a request says what another conversation is at, and if, which."""
    if not at:
        return False, f"{by} is at nothing: no task of it was observed, so this shows nothing"
    for place in places:
        for text in at:
            if place.sent and plain(text) in plain(place.text):
                return False, f"What {by} is at, “{text}”, stands in {place.name}"
    return True, f"What {by} is at, “{at[0]}”, leads nobody here"


async def died(thread_id: UUID) -> bool:
    """Observe, and die while the model is asked, as with the process; False if it never was."""
    asked = asyncio.Event()

    async def never(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        await asyncio.Event().wait()
        return ModelResponse(parts=[])  # Nobody ends the wait.

    model = FunctionModel(never, model_name="dies")
    work = asyncio.create_task(operate.observe_now(thread_id, resolve=lambda name: model))
    waiting = asyncio.create_task(asked.wait())
    await asyncio.wait({work, waiting}, timeout=DIES_AFTER, return_when=asyncio.FIRST_COMPLETED)
    for task in (work, waiting):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return asked.is_set() and await sync_to_async(_lapse)(thread_id)


def _lapse(thread_id: UUID) -> bool:
    """End the leases of what ran in a thread: nobody renews those of a dead process."""
    mine = Cycle.objects.running().filter(thread=thread_id)
    return bool(mine.update(lease_expires_at=timezone.now() - timedelta(seconds=1)))
