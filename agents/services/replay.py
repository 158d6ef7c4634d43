"""Feed a recorded conversation through turns and memory, as if it were said now.

No Actor is asked: each answer is the recorded one. The thread's metadata counts the recorded
messages that are stored, in the transaction that stores them, so that a replay which was
killed at any moment goes on exactly where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from memory.messages import plain_text
from memory.models import Cycle, MemoryRecord, Resource, Thread
from memory.publish import publish
from memory.recordings import Recorded, Recording
from memory.services.append import append
from memory.services.cycles import Resolve, resolve_model, retire_lapsed
from memory.services.due import run_due
from memory.services.observe import observe_while_waiting
from memory.services.prepare import prepare

from ..events import TurnStarted
from ..models import AgentProfile, Turn, TurnLost, lease
from .begin import Running
from .close import close_lapsed
from .thread import start
from .turn import close

logger = logging.getLogger(__name__)

KEY = "replay"
LONGEST_PAUSE = 2.0
POLL_SECONDS = 0.1
INTERRUPTED = "The replay was interrupted."


class ReplayRefused(ValueError):
    """Say in one sentence why a recording cannot be replayed into a conversation."""


@dataclass(frozen=True, slots=True)
class Source:
    """Name a recording by its key and the digest of its file."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold how far a replay is.

    ``waiting_for`` says what it waits for, if it does; ``already`` that it had been finished
    before, so that nothing was done.
    """

    stored: int
    total: int
    cycles: int = 0
    waiting_for: str = ""
    finished: bool = False
    already: bool = False


Report = Callable[[Progress], None]


def replays(thread: Thread, source: Source) -> bool:
    """Tell whether a thread was made for replaying this very recording."""
    known = thread.metadata.get(KEY, {})
    return (known.get("key"), known.get("digest")) == (source.key, source.digest)


@transaction.atomic
def begin(
    source: Source,
    *,
    resource: Resource,
    profile: AgentProfile,
    title: str,
    options: Mapping[str, Any] | None = None,
) -> Thread:
    """Return a new thread for a recording, its record holding the memory options given."""
    thread = start(resource, profile, title=title)
    adopt(thread, source, options=options)
    return thread


@transaction.atomic
def adopt(thread: Thread, source: Source, *, options: Mapping[str, Any] | None = None) -> None:
    """Use an empty thread for a recording. Raises ReplayRefused when it is not empty."""
    if thread.last_position or KEY in thread.metadata:
        raise ReplayRefused(f"The conversation “{thread}” holds something else already.")
    thread.metadata[KEY] = {"key": source.key, "digest": source.digest, "stored": 0}
    thread.save(update_fields=["metadata"])
    if options:
        MemoryRecord.objects.create(
            resource_id=thread.resource_id, thread=thread, config=dict(options)
        )


async def replay(
    thread_id: UUID,
    recording: Recording,
    *,
    speed: float = 0,
    resolve: Resolve = resolve_model,
    report: Report = lambda progress: None,
) -> Progress:
    """Store what is missing of a recording turn by turn, running the cycles that become due.

    ``speed`` is how many times faster than recorded, 0 as fast as possible; no pause lasts
    longer than 2 s. Returns how it ended. Raises ReplayRefused when another process replays
    into the thread at the same time.
    """
    return await _Player(thread_id, recording, speed, resolve, report).play()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hold what one turn stores: where it begins, its prompt if it has one, and its steps.

    A step is an answer with the results of its calls: stored together, so that no kill
    leaves a call without its result.
    """

    first: int
    prompt: Recorded | None
    steps: tuple[tuple[Recorded, ...], ...]

    @property
    def at(self) -> datetime:
        """Return when the turn began."""
        return self.prompt.at if self.prompt else self.steps[0][0].at


def stretch_from(messages: Sequence[Recorded], first: int) -> Stretch:
    """Return the turn that begins at an index, or what is left of an interrupted one."""
    prompt = messages[first] if _is_prompt(messages[first].message) else None
    steps: list[list[Recorded]] = []
    for recorded in messages[first + (prompt is not None) :]:
        if _is_prompt(recorded.message):
            break
        if isinstance(recorded.message, ModelRequest) and steps:
            steps[-1].append(recorded)
        else:
            steps.append([recorded])
    return Stretch(first, prompt, tuple(map(tuple, steps)))


def _is_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart) for part in message.parts
    )


class _Player:
    """Play one recording into one thread."""

    def __init__(
        self, thread_id: UUID, recording: Recording, speed: float, resolve: Resolve, report: Report
    ) -> None:
        self.thread_id = thread_id
        self.messages = recording.messages
        self.speed = speed
        self.resolve = resolve
        self.report = report
        self.stored = 0
        self.cycles = 0

    async def play(self) -> Progress:
        known = await sync_to_async(_known)(self.thread_id)
        self.stored = known["stored"]
        if known.get("finished"):
            return self._progress(finished=True, already=True)
        while self.stored < len(self.messages):
            await self._until_free()
            running = await sync_to_async(self._begin)(stretch_from(self.messages, self.stored))
            if running is not None:
                await self._turn(*running)
        await self._settle()
        await sync_to_async(_finish)(self.thread_id)
        return self._progress(finished=True)

    def _progress(self, **state: Any) -> Progress:
        return Progress(self.stored, len(self.messages), self.cycles, **state)

    async def _until_free(self) -> None:
        """Wait until no turn of the thread is running; close a lapsed one."""
        while True:
            await sync_to_async(close_lapsed)(self.thread_id)
            if not await Turn.objects.running().filter(thread=self.thread_id).aexists():
                return
            self.report(self._progress(waiting_for="a turn of this conversation to end or lapse"))
            await asyncio.sleep(POLL_SECONDS)

    @transaction.atomic
    def _begin(self, stretch: Stretch) -> tuple[Running, Stretch] | None:
        """Open a turn and store its prompt, unseen before both are done.

        A waiting turn would be taken, and answered, by a server beside this process.
        """
        Thread.objects.filter(pk=self.thread_id).update(last_active_at=Now())
        turn = _running_turn(self.thread_id, stretch)
        if turn is None:
            return None
        if stretch.prompt is not None:
            self._store([stretch.prompt])
        publish(TurnStarted(thread=self.thread_id, turn=turn.number))
        return _running(turn, stretch), stretch

    async def _turn(self, running: Running, stretch: Stretch) -> None:
        self._count(stretch.first + (stretch.prompt is not None))
        try:
            async with _kept(running):
                await self._steps(running, stretch)
            await sync_to_async(close)(running, Turn.Status.DONE)
        except TurnLost:
            logger.warning("Turn %s was taken over; the replay goes on.", running.turn.pk)
        except asyncio.CancelledError:
            await sync_to_async(_interrupt)(running)
            raise
        self.cycles += await run_due(self.thread_id, resolve=self.resolve)
        self.report(self._progress())

    async def _steps(self, running: Running, stretch: Stretch) -> None:
        position = await sync_to_async(_prompt_position)(running.turn)
        before = stretch.at
        waited = False
        for step in stretch.steps:
            waited = await self._prepare(running, position, waited=waited)
            await self._pause(before, step[0].at)
            await sync_to_async(self._store_step)(running, step)
            self._count(self.stored + len(step))
            before = step[-1].at

    async def _prepare(self, running: Running, position: int, *, waited: bool) -> bool:
        """Do what comes before each request of an Actor; return whether this turn has waited."""
        prepared = await self._prepared(running, position, may_wait=not waited)
        if not prepared.wait_seconds:
            return waited
        self.report(self._progress(waiting_for="an observation"))
        await observe_while_waiting(
            self.thread_id, seconds=prepared.wait_seconds, resolve=self.resolve
        )
        await self._prepared(running, position, may_wait=False)
        return True

    async def _prepared(self, running: Running, position: int, *, may_wait: bool) -> Any:
        return await sync_to_async(prepare)(
            self.thread_id,
            prompt_position=position,
            at=running.at,
            may_wait=may_wait,
            fence=running.fence,
        )

    async def _pause(self, before: datetime, at: datetime) -> None:
        if self.speed:
            seconds = (at - before).total_seconds() / self.speed
            await asyncio.sleep(min(LONGEST_PAUSE, max(0.0, seconds)))

    @transaction.atomic
    def _store_step(self, running: Running, step: Sequence[Recorded]) -> None:
        running.fence()
        self._store(step)

    def _store(self, messages: Sequence[Recorded]) -> None:
        """Store recorded messages and count them, in the transaction around."""
        for recorded in messages:
            append(self.thread_id, [recorded.message], at=recorded.at)
        # Appending took the thread's row, so that nobody else counts now.
        thread = Thread.objects.get(pk=self.thread_id)
        known = thread.metadata[KEY]
        if known["stored"] != self.stored:
            raise ReplayRefused("Another process replays into this conversation right now.")
        known["stored"] += len(messages)
        thread.save(update_fields=["metadata"])

    def _count(self, stored: int) -> None:
        self.stored = stored
        self.report(self._progress())

    async def _settle(self) -> None:
        """Let the cycles end that are under way, and run those that are due after them."""
        while True:
            await sync_to_async(_retire_lapsed)(self.thread_id)
            self.cycles += await run_due(self.thread_id, resolve=self.resolve)
            if not await Cycle.objects.running().filter(thread=self.thread_id).aexists():
                return
            self.report(self._progress(waiting_for="a cycle to end or lapse"))
            await asyncio.sleep(POLL_SECONDS)


def _known(thread_id: UUID) -> dict[str, Any]:
    known: dict[str, Any] = Thread.objects.get(pk=thread_id).metadata[KEY]
    return known


@transaction.atomic
def _finish(thread_id: UUID) -> None:
    Thread.objects.filter(pk=thread_id).update(last_active_at=Now())
    thread = Thread.objects.get(pk=thread_id)
    thread.metadata[KEY]["finished"] = True
    thread.save(update_fields=["metadata"])


def _retire_lapsed(thread_id: UUID) -> None:
    retire_lapsed(Cycle.objects.filter(thread=thread_id))


def _running_turn(thread_id: UUID, stretch: Stretch) -> Turn | None:
    """Return a new turn that is running already; None while another one is."""
    turns = Turn.objects.filter(thread=thread_id)
    thread = Thread.objects.get(pk=thread_id)
    try:
        with transaction.atomic():
            turn = Turn.objects.create(
                thread_id=thread_id,
                number=(turns.aggregate(last=Max("number"))["last"] or 0) + 1,
                status=Turn.Status.RUNNING,
                prompt=plain_text(stretch.prompt.message) if stretch.prompt else "",
                lease_token=uuid4(),
                lease_expires_at=Now() + lease(),
                started_at=Now(),
                first_position=thread.last_position + 1,
            )
    except IntegrityError:
        return None
    return turn


def _running(turn: Turn, stretch: Stretch) -> Running:
    zone = Resource.objects.get(threads=turn.thread_id).time_zone
    first = stretch.prompt or stretch.steps[0][0]
    return Running(
        turn=turn,
        zone=ZoneInfo(zone),
        prompt=first.message,
        at=stretch.at,
        after=turn.first_position or 0,
    )


def _prompt_position(turn: Turn) -> int:
    """Return where the prompt stands; that of the turn before, when this goes on with it."""
    prompts = Turn.objects.filter(thread=turn.thread_id, number__lte=turn.number)
    latest = prompts.exclude(prompt="").order_by("-number").first()
    return (latest.first_position if latest else None) or 1


@asynccontextmanager
async def _kept(running: Running) -> AsyncIterator[None]:
    """Renew the turn's lease until the block ends."""
    task = asyncio.create_task(_renew(running))
    try:
        yield
    finally:
        task.cancel()


async def _renew(running: Running) -> None:
    while True:
        await asyncio.sleep(settings.LEASE.total_seconds() / 4)
        try:
            await sync_to_async(running.fence)()
        except TurnLost:
            return  # The next step will find out.
        except Exception:
            # A database that is away for a moment must not end the replay.
            logger.warning("Turn %s was not renewed.", running.turn.pk, exc_info=True)


def _interrupt(running: Running) -> None:
    try:
        close(running, Turn.Status.INTERRUPTED, error=INTERRUPTED)
    except TurnLost:
        logger.warning("Turn %s was taken over by another process.", running.turn.pk)
