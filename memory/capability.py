"""Give one run of a pydantic-ai agent Observational Memory."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from pydantic_ai import RetryModelRequest, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext

from memory.models.record import RecordMoved
from memory.overflow import ContextOverflow, bound_in, is_overflow
from memory.services.append import Fence, append, no_fence
from memory.services.cycles import Resolve, reason, resolve_model
from memory.services.early import Early
from memory.services.force import OVERFLOW, observe_pending
from memory.services.kept import Raw
from memory.services.look import View, look
from memory.services.observe import observe_while_waiting
from memory.services.prepare import Prepared, plain, prepare_from
from memory.services.request import message_block
from memory.services.tail import tail
from memory.tokens import count

logger = logging.getLogger(__name__)

Recorder = Callable[[int, Prepared], None]
Stored = Callable[[Raw], None]

Observing = Callable[..., Awaitable[None]]
Given = tuple[Prepared, Sequence[Raw]]
"""A request, and the messages that were stored with it."""

OVERFLOWN = Early(observation=OVERFLOW)
MOST_ATTEMPTS = 3
MOST_MOVES = 5
SMALLER = 0.6
"""How much of the room that was too much is used after all, since tokens are counted variously."""


@dataclass(init=False)
class TurnMemory(AbstractCapability[Any]):
    """Store every finished message of one run and send memory instead of the whole history.

    Made for one run. The prompt is stored by the caller, at ``prompt_position``; ``first`` is
    the first request, when the caller has prepared it with the prompt. ``record`` is told each
    request, ``stored`` each message once it is safe; ``fence`` raises when the run lost its
    right to write. All three are called in the database's thread. With ``holds_last`` an
    answer that calls no tool is left in ``held`` for the caller to store with the run's end.
    ``model_name`` is that of the run's model, with its provider.

    A request that its provider refuses as too long is sent again within the same step: first
    with what is pending observed, then without the oldest messages. ``record`` is told each of
    them, with ``overflowed`` set when one of the same step was told before; when it raises
    RecordMoved, the request is prepared anew. Where memory itself
    fails, the newest messages are sent as they are. What the fence raises, and a database that
    is away, end the run.
    """

    def __init__(
        self,
        thread_id: UUID,
        *,
        prompt_position: int,
        at: datetime,
        fence: Fence = no_fence,
        first: Prepared | None = None,
        record: Recorder | None = None,
        stored: Stored | None = None,
        resolve: Resolve = resolve_model,
        holds_last: bool = False,
        model_name: str = "",
    ) -> None:
        self.id = None
        self.description = None
        self.defer_loading = False
        self.thread_id = thread_id
        self.prompt_position = prompt_position
        self.at = at
        self.fence = fence
        self.first = first
        self.record = record
        self.stored = stored
        self.resolve = resolve
        self.holds_last = holds_last
        self.model_name = model_name
        self.held: ModelResponse | None = None
        self.prepared: Prepared | None = None
        self.step = 0
        self.attempt = 1
        self.overflowed = False
        self.waited = 0.0
        self.early = Early()
        self.newest: list[Raw] = []
        self.overhead: int | None = None
        self.window: int | None = None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what the tools returned, then replace the history by what memory makes of it."""
        new = [*self._released(), *newest(request_context.messages)] if self.step else []
        self.step += 1
        self.attempt, self.overflowed = 1, False
        prepared = self.first if self.step == 1 else None
        if prepared is None:
            self._weigh(request_context)
            prepared = await sync_to_async(self._prepare)(new)
        if prepared.wait_seconds:
            prepared = await self._wait(prepared.wait_seconds)
        self.prepared = prepared
        return self._sending(request_context)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send what was prepared anew, where the step's first request was too long."""
        return request_context if self.attempt == 1 else self._sending(request_context)

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Make room and try again when the request was too long for the model."""
        view = self.prepared.view if self.prepared is not None else None
        if view is None or not view.options.observe_on_overflow or not is_overflow(error):
            raise error
        if self.attempt == MOST_ATTEMPTS:
            _give_up(error)
        logger.info("Step %s of thread %s was too long.", self.step, self.thread_id)
        self._weigh(request_context)
        self.overflowed = True
        self.prepared = await self._shorter(view, error)
        self.attempt += 1
        raise RetryModelRequest

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Store the finished answer of this step."""
        if self.holds_last and not any(isinstance(p, ToolCallPart) for p in response.parts):
            self.held = response
        else:
            await sync_to_async(self._store)([response])
        return response

    def _sending(self, request_context: ModelRequestContext) -> ModelRequestContext:
        assert self.prepared is not None
        messages = self.prepared.messages
        return replace(request_context, messages=messages) if messages else request_context

    def _released(self) -> list[ModelMessage]:
        held, self.held = self.held, None
        return [] if held is None else [held]

    async def _wait(self, seconds: float) -> Prepared:
        """Wait for an observation, once, and prepare again with or without it."""
        await self._bounded(observe_while_waiting, seconds)
        return await sync_to_async(self._prepare)()

    async def _bounded(self, observe: Observing, seconds: float) -> None:
        """Observe within so many seconds of all that a run may wait; nothing is raised."""
        began = time.monotonic()
        try:
            await observe(self.thread_id, seconds=seconds - self.waited, resolve=self.resolve)
        except Exception:
            # The answer goes on with what is remembered; the cycle's row says what went wrong.
            logger.exception("Nothing was observed for thread %s.", self.thread_id)
        # Also a wait that took no time was one.
        self.waited += max(time.monotonic() - began, 0.001)

    async def _shorter(self, view: View, error: Exception) -> Prepared:
        """Return a shorter request: with what is pending observed, else without the oldest."""
        too_long = self.prepared
        if self.attempt == 1 and self.waited < view.options.wait_seconds:
            await self._bounded(observe_pending, view.options.wait_seconds)
            prepared = await sync_to_async(self._prepare)(early=OVERFLOWN)
            if too_long is None or prepared.hash != too_long.hash:
                return prepared
        self.window = self._smaller(error)
        return await sync_to_async(self._prepare)(early=OVERFLOWN)

    def _smaller(self, error: Exception) -> int:
        """Return the window to keep to from now on, knowing that the last request was too long."""
        assert self.prepared is not None
        sent = self.prepared.tokens + (self.overhead or 0)
        return max(1, round(SMALLER * min(sent, bound_in(error) or sent)))

    def _weigh(self, request_context: ModelRequestContext) -> None:
        """Count once what every request of the run holds besides messages."""
        if self.overhead is None:
            asked = request_context.model_request_parameters
            told = [part.content for part in asked.instruction_parts or ()]
            tools = [(t.description, t.parameters_json_schema) for t in asked.function_tools]
            self.overhead = count("\n".join(told)) + count(json.dumps(tools, default=str))

    def _prepare(self, new: Sequence[ModelMessage] = (), early: Early | None = None) -> Prepared:
        """Store what is new and prepare the next request, in one transaction."""
        early = early or (self.early if self.step == 1 else Early())
        try:
            prepared, stored = self._remembering_anew(new, early)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever fails in memory fails no turn
            prepared, stored = self._without_memory(new, error)
        # What fails from here on must not store the same again.
        self._tell(stored)
        return prepared

    def _remembering_anew(self, new: Sequence[ModelMessage], early: Early) -> Given:
        for _ in range(MOST_MOVES):
            try:
                return self._remembering(new, early)
            except RecordMoved:
                continue  # Somebody edited or erased while it was read.
        return self._remembering(new, early)

    def _remembering(self, new: Sequence[ModelMessage], early: Early) -> Given:
        with transaction.atomic():
            self.fence()
            view = look(self.thread_id)
            stored = append(self.thread_id, new, at=timezone.now(), model=self.model_name)
            if view is None:
                prepared = plain(self.thread_id)
            else:
                prepared = prepare_from(
                    self._fitted(view.with_raw(stored)),
                    prompt_position=self.prompt_position,
                    at=self.at,
                    may_wait=self.waited == 0,
                    early=early,
                    overhead=self.overhead or 0,
                )
                prepared = with_step(prepared, [*self.newest, *stored])
            if self.record is not None and not prepared.wait_seconds:
                self.record(self.step, prepared)
        return prepared, stored

    def _fitted(self, view: View) -> View:
        if self.window is None:
            return view
        smaller = view.options.model_copy(update={"context_tokens": self.window})
        return replace(view, options=smaller)

    def _without_memory(self, new: Sequence[ModelMessage], error: Exception) -> Given:
        """Store what is new and return the newest messages; only what is no memory may fail."""
        with transaction.atomic():
            self.fence()
            stored = append(self.thread_id, new, at=timezone.now(), model=self.model_name)
            logger.error(
                "Step %s of thread %s goes on without memory.",
                self.step,
                self.thread_id,
                exc_info=error,
            )
            prepared = tail(self.thread_id, prompt_position=self.prompt_position, why=reason(error))
            self._record_if_possible(prepared)
        return prepared, stored

    def _record_if_possible(self, prepared: Prepared) -> None:
        if self.record is None:
            return
        try:
            with transaction.atomic():
                self.record(self.step, prepared)
        except Exception:
            # The record is for whoever looks at it later: to lack it must not cost the answer.
            logger.exception("Step %s of thread %s has no record.", self.step, self.thread_id)

    def _store(self, messages: Sequence[ModelMessage]) -> None:
        self._tell(
            append(
                self.thread_id,
                messages,
                at=timezone.now(),
                fence=self.fence,
                model=self.model_name,
            )
        )

    def _tell(self, stored: Sequence[Raw]) -> None:
        for raw in stored:
            begins = isinstance(raw.message, ModelResponse)
            self.newest = [raw] if begins else [*self.newest, raw]
        if self.stored is not None:
            for raw in stored:
                self.stored(raw)


def with_step(prepared: Prepared, step: Sequence[Raw]) -> Prepared:
    """Return a request that holds the newest step raw, like the prompt, though it is observed.

    That happens where a turn waits for an observation, or somebody asks for one meanwhile. What
    the model just called for must reach it as it is.
    """
    positions = {raw.position for raw in step}
    if positions <= {block.position for block in prepared.blocks}:
        return prepared
    before = [block for block in prepared.blocks if block.position not in positions]
    blocks = (*before, *(message_block("prompt", raw) for raw in step))
    return replace(prepared, blocks=blocks)


def newest(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the requests since the last answer: what the graph made for this step."""
    # The request's list is never counted, since ours replaces it at every step.
    newest: list[ModelMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ModelRequest):
            break
        newest.insert(0, message)
    return newest


def _give_up(error: Exception) -> NoReturn:
    raise ContextOverflow(
        "The request is longer than the model can read, although what can be left out of it was: "
        "choose a model with a larger window, shorten the message, or lower the options "
        "message_tokens and observation_tokens."
    ) from error
