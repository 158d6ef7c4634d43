"""Run turns: from a waiting prompt to a closed turn, one at a time per thread.

A turn is its runner's while it holds the lease token: every write renews it first in the
same transaction, and a runner that lost it writes nothing more. Turns are never resumed;
a lapsed one is closed as interrupted, with what it had said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections, transaction
from django.utils import timezone
from pydantic_ai import Agent, CancellationToken, RunUsage
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model

from memory import llm, telemetry
from memory.capability import TurnMemory
from memory.dispatch import dispatch
from memory.overflow import ContextOverflow
from memory.publish import send
from memory.services.cycles import Resolve, resolve_model
from memory.services.kept import Raw
from memory.services.prepare import Prepared, due

from .. import costs
from ..actor import build
from ..aloud import Aloud
from ..away import insist, is_away
from ..events import TurnDelta
from ..models import Turn, TurnLost
from ..patient import Patient
from ..tools import Deps
from .begin import Running, begin
from .close import NOTHING, Used, close_turn

logger = logging.getLogger(__name__)

DELTA_SECONDS = 0.08
DRAFT_SECONDS = 1.0

AWAY = "The database did not answer while this was being answered. Try again in a moment."

_STOPS: dict[UUID, CancellationToken] = {}


class AgentMissing(Exception):
    """Say that a conversation's agent is not there any more."""


async def run_turns(thread_id: UUID, *, resolve: Resolve = resolve_model) -> int:
    """Run the waiting turns of a thread one after another; return how many."""
    turns = 0
    running = await sync_to_async(begin)(thread_id)
    while running:
        running = await run(running, resolve=resolve)
        turns += 1
    return turns


async def run(running: Running, *, resolve: Resolve = resolve_model) -> Running | None:
    """Let the Actor answer, close the turn and begin the next that waits, if one does.

    A failure ends the turn, never the runner.
    """
    turn = running.turn
    with telemetry.working("turn", [turn.pk], thread=turn.thread_id):
        return await _run(running, resolve)


async def _run(running: Running, resolve: Resolve) -> Running | None:
    turn = running.turn
    memory = _memory(running, resolve)
    _STOPS[turn.pk] = running.stop
    try:
        async with _kept(running):
            await _answer(running, memory, resolve)
        held = [] if memory.held is None else [memory.held]
        return await insist(partial(_close_and_begin, running, held))
    except RunCancelled:
        await _end(running, Turn.Status.STOPPED, messages=_last_words(running, memory))
    except TurnLost:
        logger.warning("Turn %s was taken over by another process.", turn.pk)
    except Exception as error:  # noqa: BLE001 - whatever fails is told to the user in a sentence
        logger.info("Turn %s failed: %s", turn.pk, error)
        ours = isinstance(error, llm.ModelUnavailable | AgentMissing | ContextOverflow)
        sentence = str(error) if ours else AWAY if is_away(error) else llm.explain(error)
        words = _last_words(running, memory)
        await _end(running, Turn.Status.FAILED, error=sentence, messages=words)
    finally:
        _STOPS.pop(turn.pk, None)
    return await sync_to_async(begin)(turn.thread_id)


def _close_and_begin(running: Running, messages: Sequence[ModelMessage]) -> Running | None:
    """Close a turn that went well and begin the next: one way to the database for both."""
    close(running, Turn.Status.DONE, messages=messages)
    return begin(running.turn.thread_id)


def _memory(running: Running, resolve: Resolve) -> TurnMemory:
    memory = TurnMemory(
        running.turn.thread_id,
        prompt_position=running.turn.first_position or 0,
        at=running.at,
        fence=running.fence,
        first=running.first,
        stored=running.stored,
        resolve=resolve,
        holds_last=True,
        model_name=running.profile.model_name if running.profile is not None else "",
    )

    def record(step: int, prepared: Prepared) -> None:
        if memory.overflowed:
            running.text = ""
        running.record(step, prepared, again=memory.overflowed)

    memory.record = record
    return memory


async def _answer(running: Running, memory: TurnMemory, resolve: Resolve) -> None:
    turn, profile = running.turn, running.profile
    if profile is None:
        raise AgentMissing(
            f"The agent “{turn.thread.agent}” of this conversation no longer exists."
        )
    model = await _model(profile.model_name, resolve)
    view = running.first.view if running.first is not None else None
    options = view.options if view is not None else None
    agent = build(
        profile,
        model=Aloud(
            Patient(model, tries=settings.MODEL_TRIES),
            Hearing(running),
            silence=settings.MODEL_SILENCE,
        ),
        memory=memory,
        options=options,
    )
    usage = RunUsage()
    try:
        await _asked(agent, running, usage)
    finally:
        # What a turn that failed or was stopped had used by then counts too.
        running.used = _used(profile.model_name, usage)
    if running.text:
        await _send_delta(running)


async def _asked(agent: Agent[Deps, Any], running: Running, usage: RunUsage) -> None:
    await agent.run(
        message_history=[running.prompt],
        deps=Deps(thread_id=running.turn.thread_id, zone=running.zone),
        cancellation_token=running.stop,
        infer_name=False,
        usage=usage,
    )


_IMPORTED: set[str] = set()


async def _model(name: str, resolve: Resolve) -> Model:
    """Return the model of a name: the first time in a thread, since it imports a package."""
    if name in _IMPORTED:
        return resolve(name)
    model = await asyncio.to_thread(resolve, name)
    _IMPORTED.add(name)
    return model


class Hearing:
    """Take down what a turn says, and send it to its pages now and then."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._clock = asyncio.get_running_loop().time
        self._sent_at = 0.0

    async def __call__(self, event: ModelResponseStreamEvent) -> None:
        running, said = self._running, _said(event)
        if said is None:
            return
        # A step may say several texts, as around a tool call; storing it begins a new one.
        between = "\n\n" if running.text and isinstance(event, PartStartEvent) else ""
        running.text += between + said
        if self._clock() - self._sent_at >= DELTA_SECONDS:
            self._sent_at = self._clock()
            await _send_delta(running)


def _used(model: str, usage: RunUsage) -> Used:
    """Return what an answer took, priced now: prices and agents change."""
    if not usage.requests:
        return NOTHING
    read, wrote = usage.input_tokens, usage.output_tokens
    counts = {"requests": usage.requests, "input_tokens": read, "output_tokens": wrote}
    return Used(counts, model, costs.of_run(model, usage))


def _said(event: object) -> str | None:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return None


async def _send_delta(running: Running) -> None:
    turn = running.turn
    await send(
        TurnDelta(thread=turn.thread_id, turn=turn.number, after=running.after, text=running.text)
    )


@asynccontextmanager
async def _kept(running: Running) -> AsyncIterator[None]:
    """Renew the lease, save the draft and look for a stop until the block ends."""
    task = asyncio.create_task(_keep(running))
    try:
        yield
    finally:
        task.cancel()


async def _keep(running: Running) -> None:
    while True:
        await asyncio.sleep(min(DRAFT_SECONDS, settings.LEASE.total_seconds() / 4))
        try:
            if await sync_to_async(_save_draft)(running):
                running.stop.cancel()
        except TurnLost:
            running.stop.cancel()
            return
        except Exception:
            # A database that is away for a moment must not end the answer.
            logger.warning("Turn %s was not renewed.", running.turn.pk, exc_info=True)
            await sync_to_async(close_old_connections)()


def _save_draft(running: Running) -> bool:
    """Renew the lease with the draft; return whether somebody asked to stop."""
    turn = running.turn
    changes = {} if running.text == running.saved else {"draft_text": running.text}
    turn.renew(**changes)
    running.saved = running.text
    return Turn.objects.values_list("stop_requested", flat=True).get(pk=turn.pk)


def _last_words(running: Running, memory: TurnMemory) -> list[ModelMessage]:
    """Return what an unfinished step had said, to be stored; empty when it had said nothing."""
    if memory.held is not None:
        return [memory.held]
    if not running.text.strip():
        return []
    return [ModelResponse(parts=[TextPart(running.text)], timestamp=timezone.now())]


async def _end(
    running: Running, status: Turn.Status, *, error: str = "", messages: Sequence[ModelMessage]
) -> None:
    try:
        await insist(partial(close, running, status, error=error, messages=messages))
    except TurnLost:
        logger.warning("Turn %s was taken over by another process.", running.turn.pk)


def close(
    running: Running,
    status: Turn.Status,
    *,
    error: str = "",
    messages: Sequence[ModelMessage] = (),
) -> None:
    """Close a turn of this process and wake the runner of cycles where any is due.

    Raises TurnLost, with nothing written.
    """
    turn = running.turn
    with transaction.atomic():
        stored = close_turn(
            turn,
            status,
            messages=messages,
            after=running.after if running.prepared else None,
            error=error,
            used=running.used,
        )
        if _may_be_due(running, stored):
            dispatch(turn.thread_id)


def _may_be_due(running: Running, stored: Sequence[Raw]) -> bool:
    """Tell whether a cycle may be due, from what the last request was made of and came after."""
    if running.prepared is None:
        return True
    view = running.prepared.view
    if view is None:
        return False
    now = view.with_raw([*running.since, *stored])
    return bool(due(now, resting=view.options.buffer_on_idle))


def stop(thread_id: UUID) -> bool:
    """Ask the running turn of a thread to stop, whichever process runs it."""
    turn = Turn.objects.running().filter(thread=thread_id).first()
    if turn is None:
        return False
    Turn.objects.running().filter(pk=turn.pk).update(stop_requested=True)
    token = _STOPS.get(turn.pk)
    if token is not None:
        token.cancel()
    return True
