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
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone
from pydantic_ai import AgentRunResultEvent, CancellationToken, RunUsage
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from memory import llm
from memory.capability import ObservationalMemory
from memory.dispatch import dispatch
from memory.messages import interrupted_returns, load, open_calls, user_prompt
from memory.models import Message
from memory.publish import publish, send
from memory.services.append import append
from memory.services.cycles import Resolve, resolve_model
from memory.services.prepare import Prepared

from ..actor import build
from ..events import TurnClosed, TurnDelta, TurnStarted
from ..models import AgentProfile, RequestSnapshot, Turn, TurnLost, lease
from ..tools import Deps

logger = logging.getLogger(__name__)

DELTA_SECONDS = 0.08
DRAFT_SECONDS = 1.0

_STOPS: dict[UUID, CancellationToken] = {}


class AgentMissing(Exception):
    """Say that a conversation's agent is not there any more."""


@dataclass
class Running:
    """Hold a turn under way in this process: what it has said so far, and how to stop it."""

    turn: Turn
    zone: ZoneInfo
    prompt: ModelMessage
    at: datetime
    after: int
    text: str = ""
    saved: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    stop: CancellationToken = field(default_factory=CancellationToken)

    def fence(self) -> None:
        """Renew the lease, first of all writes. Raises TurnLost."""
        self.turn.renew(draft_text="")

    def stored(self, message: Message) -> None:
        """Forget what a step had said so far: it is a message now."""
        self.text = self.saved = ""
        self.after = message.position


async def run_turns(thread_id: UUID, *, resolve: Resolve = resolve_model) -> int:
    """Run the waiting turns of a thread one after another; return how many."""
    turns = 0
    while running := await sync_to_async(begin)(thread_id):
        await run(running, resolve=resolve)
        turns += 1
    return turns


def begin(thread_id: UUID, *, at: datetime | None = None) -> Running | None:
    """Start the lowest waiting turn and store its prompt, in one transaction.

    Returns None when there is none or another turn is running.
    """
    at = at or timezone.now()
    close_lapsed(thread_id)
    with transaction.atomic():
        turn = Turn.objects.waiting().filter(thread=thread_id).first()
        if turn is None or not _take(turn):
            return None
        prompt = user_prompt(turn.prompt, at)
        stored = append(thread_id, [prompt], at=at)[0]
        turn.first_position = stored.position
        Turn.objects.filter(pk=turn.pk).update(first_position=stored.position)
        publish(TurnStarted(thread=thread_id, turn=turn.number))
    thread = turn.thread
    return Running(
        turn=turn,
        zone=ZoneInfo(thread.resource.time_zone),
        prompt=load(stored.payload),
        at=at,
        after=stored.position,
    )


def _take(turn: Turn) -> bool:
    turn.lease_token = uuid4()
    try:
        with transaction.atomic():
            taken = (
                Turn.objects.waiting()
                .filter(pk=turn.pk)
                .update(
                    status=Turn.Status.RUNNING,
                    lease_token=turn.lease_token,
                    lease_expires_at=Now() + lease(),
                    started_at=Now(),
                )
            )
    except IntegrityError:
        return False  # Another turn of the thread is running; its end starts the next.
    return bool(taken)


async def run(running: Running, *, resolve: Resolve = resolve_model) -> None:
    """Let the Actor answer and close the turn. A failure ends the turn, never the runner."""
    turn = running.turn
    _STOPS[turn.pk] = running.stop
    try:
        async with _kept(running):
            await _answer(running, resolve)
        await sync_to_async(close)(running, Turn.Status.DONE)
    except RunCancelled:
        await _end(running, Turn.Status.STOPPED, partial=_partial(running))
    except TurnLost:
        logger.warning("Turn %s was taken over by another process.", turn.pk)
    except Exception as error:  # noqa: BLE001 - whatever fails is told to the user in a sentence
        logger.info("Turn %s failed: %s", turn.pk, error)
        ours = isinstance(error, llm.ModelUnavailable | AgentMissing)
        sentence = str(error) if ours else llm.explain(error)
        await _end(running, Turn.Status.FAILED, error=sentence, partial=_partial(running))
    finally:
        _STOPS.pop(turn.pk, None)


async def _answer(running: Running, resolve: Resolve) -> None:
    turn = running.turn
    memory = ObservationalMemory(
        turn.thread_id,
        prompt_position=turn.first_position or 0,
        at=running.at,
        fence=running.fence,
        record=lambda step, prepared: _snapshot(running.turn, step, prepared),
        stored=running.stored,
        resolve=resolve,
    )
    profile = await sync_to_async(_profile)(turn.thread.agent)
    model = await asyncio.to_thread(resolve, profile.model_name)
    agent = build(profile, model=model, memory=memory)
    async with agent.run_stream_events(
        message_history=[running.prompt],
        deps=Deps(thread_id=turn.thread_id, zone=running.zone),
        cancellation_token=running.stop,
    ) as events:
        await _stream(running, events)


def _profile(slug: str) -> AgentProfile:
    found = AgentProfile.objects.filter(slug=slug).first()
    if found is None:
        raise AgentMissing(f"The agent “{slug}” of this conversation no longer exists.")
    return found


async def _stream(running: Running, events: AsyncIterator[Any]) -> None:
    sent_at = 0.0
    clock = asyncio.get_running_loop().time
    async for event in events:
        if isinstance(event, AgentRunResultEvent):
            running.usage = _usage(event.result.usage)
        said = _said(event)
        if said is None:
            continue
        # A step may say several texts, as around a tool call; storing it begins a new one.
        between = "\n\n" if running.text and isinstance(event, PartStartEvent) else ""
        running.text += between + said
        if clock() - sent_at >= DELTA_SECONDS:
            sent_at = clock()
            await _send_delta(running)
    if running.text:
        await _send_delta(running)


def _usage(usage: RunUsage) -> dict[str, int]:
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


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


def _save_draft(running: Running) -> bool:
    """Renew the lease with the draft; return whether somebody asked to stop."""
    turn = running.turn
    changes = {} if running.text == running.saved else {"draft_text": running.text}
    turn.renew(**changes)
    running.saved = running.text
    return Turn.objects.values_list("stop_requested", flat=True).get(pk=turn.pk)


def _snapshot(turn: Turn, step: int, prepared: Prepared) -> None:
    RequestSnapshot.objects.create(
        turn=turn,
        step=step,
        revision=prepared.revision,
        blocks=[
            {"kind": b.kind, "source": b.source, "tokens": b.tokens, "hash": b.hash}
            for b in prepared.blocks
        ],
        total=prepared.tokens,
        cacheable=prepared.cacheable,
        hash=prepared.hash,
    )


def _partial(running: Running) -> ModelResponse | None:
    """Return what an unfinished step had said, to be stored; None when it had said nothing."""
    if not running.text.strip():
        return None
    return ModelResponse(parts=[TextPart(running.text)], timestamp=timezone.now())


async def _end(
    running: Running, status: Turn.Status, *, error: str = "", partial: ModelResponse | None = None
) -> None:
    try:
        await sync_to_async(close)(running, status, error=error, partial=partial)
    except TurnLost:
        logger.warning("Turn %s was taken over by another process.", running.turn.pk)


def close(
    running: Running,
    status: Turn.Status,
    *,
    error: str = "",
    partial: ModelResponse | None = None,
) -> None:
    """Close a turn of this process. Raises TurnLost, with nothing written."""
    close_turn(running.turn, status, error=error, partial=partial, usage=running.usage)


def close_turn(
    turn: Turn,
    status: Turn.Status,
    *,
    error: str = "",
    partial: ModelResponse | None = None,
    usage: dict[str, int] | None = None,
) -> None:
    """Close a turn and leave no tool call without its result, in one transaction."""
    with transaction.atomic():
        turn.renew()
        tail: list[ModelMessage] = [partial] if partial is not None else []
        if status != Turn.Status.DONE:
            tail = [*_returns_of_open_calls(turn), *tail]
        append(turn.thread_id, tail, at=timezone.now())
        last = Message.objects.filter(thread=turn.thread_id).aggregate(last=Max("position"))
        turn.close(status, error=error, usage=usage or {}, last_position=last["last"])
        publish(TurnClosed(thread=turn.thread_id, turn=turn.number, status=status.value))
        dispatch(turn.thread_id)


def _returns_of_open_calls(turn: Turn) -> Sequence[ModelMessage]:
    since = (turn.first_position or 1) - 1
    stored = [load(m.payload) for m in Message.objects.above(turn.thread_id, since)]
    calls = open_calls(stored)
    return [interrupted_returns(calls)] if calls else []


def close_lapsed(thread_id: UUID | None = None) -> int:
    """Close turns whose process died as interrupted, with what they had said; return how many."""
    lapsed = Turn.objects.lapsed()
    if thread_id is not None:
        lapsed = lapsed.filter(thread=thread_id)
    closed = 0
    for turn in lapsed:
        closed += _take_over(turn)
    return closed


def _take_over(turn: Turn) -> int:
    token = uuid4()
    with transaction.atomic():
        taken = Turn.objects.lapsed().filter(pk=turn.pk, lease_token=turn.lease_token)
        if not taken.update(lease_token=token):
            return 0
        turn.lease_token = token
        turn.refresh_from_db(fields=["draft_text"])
        said = turn.draft_text.strip()
        partial = ModelResponse(parts=[TextPart(turn.draft_text)]) if said else None
        close_turn(
            turn,
            Turn.Status.INTERRUPTED,
            error="The server stopped while this was being answered.",
            partial=partial,
        )
    return 1


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
