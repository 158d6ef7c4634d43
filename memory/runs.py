"""Remember one run of an agent that nobody else keeps turns of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from pydantic_ai import AgentRunResult, RunContext
from pydantic_ai.capabilities import WrapRunHandler
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.toolsets import AgentToolset, FunctionToolset

from memory.background import at_home
from memory.capability import TurnMemory, newest
from memory.config import MemoryOptions
from memory.dispatch import dispatch
from memory.library import Place
from memory.messages import GAP, interrupted_returns, load, open_calls, safe_text, user_prompt
from memory.models import Message, Resource, Thread
from memory.recall_tool import recall_tool
from memory.services.append import append
from memory.services.configure import configure
from memory.services.cycles import Resolve, resolve_model
from memory.services.early import Early, early_of, gap_before
from memory.services.look import View, look, options_in, read
from memory.services.recall import Scope
from memory.standalone import AGENT

logger = logging.getLogger(__name__)


class ThreadBusy(Exception):
    """Say that a run waits for itself: it was started by a tool of one in the same thread."""


def open_run(place: Place, options: Mapping[str, Any], model: Any) -> RunMemory:
    """Return the memory of a new run; thread and resource are made where they are missing.

    Raises ValueError for options that are wrong, and where the thread is another resource's.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
    thread = _thread(place)
    if options:
        _set(thread.pk, options)
    return RunMemory(thread.pk, options=options_in(read(thread.pk)), model=model)


def lines_of(thread_id: UUID) -> list[str]:
    """Return the lines a thread is sent now; none where there is no such thread."""
    if not Thread.objects.filter(pk=thread_id).exists():
        return []
    view = look(thread_id)
    return [] if view is None else [line.text for line in view.lines]


def _thread(place: Place) -> Thread:
    found = Thread.objects.select_related("resource").filter(pk=place.thread_id).first()
    thread = found or _make(place)
    owner = thread.resource
    if place.resource and owner.key != place.resource:
        raise ValueError(
            f"resource: the thread {thread.pk} belongs to {owner.key!r}, not to {place.resource!r}"
        )
    if place.scope and owner.scope != place.scope:
        raise ValueError(
            f"scope = {place.scope!r}: the memory of {owner.key!r} was begun with "
            f"{owner.scope or 'thread'!r}; move it with memory.services.scope.change_scope"
        )
    return thread


def _make(place: Place) -> Thread:
    key = place.resource or f"thread-{place.thread_id.hex}"
    with transaction.atomic():
        resource, _ = Resource.objects.get_or_create(
            key=key,
            defaults={
                "name": safe_text(place.name or key)[:200],
                "scope": place.scope,
                "time_zone": place.time_zone,
            },
        )
        thread, _ = Thread.objects.get_or_create(
            pk=place.thread_id,
            defaults={"resource": resource, "title": safe_text(place.title)[:200]},
        )
    return thread


def _set(thread_id: UUID, options: Mapping[str, Any]) -> None:
    """Write options to the thread's record where it says otherwise. Raises ValueError."""
    record = read(thread_id).record
    wanted = MemoryOptions.model_validate(options).model_dump(mode="json")
    if record is not None and any(record.config.get(name) != wanted[name] for name in options):
        configure(thread_id, options, reason="Given by the program.")


@dataclass(init=False)
class RunMemory(TurnMemory):
    """Store the prompt of a run too, and leave its thread whole however the run ends."""

    def __init__(self, thread_id: UUID, *, options: MemoryOptions, model: Any) -> None:
        super().__init__(
            thread_id,
            prompt_position=0,
            at=timezone.now(),
            resolve=_resolving(model),
            model_name=f"{model.system}:{model.model_name}",
        )
        self.options = options
        self.answered = False

    def get_toolset(self) -> AgentToolset[Any] | None:
        """Return the tool that recalls messages, where the options switch it on."""
        wanted = self.options.retrieval
        if wanted is None:
            return None
        scope: Scope | None = "thread" if wanted.scope == "thread" else None
        return FunctionToolset([recall_tool(self.thread_id, scope=scope)])

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        """Run alone in the thread, and store what the end of the run left."""
        async with _alone(self.thread_id):
            at_home(self.thread_id, resolve=self.resolve)
            try:
                result = await handler()
            except BaseException:
                await self._end_failed(ctx.messages)
                raise
            await sync_to_async(self._end)(result.all_messages(), failed=False)
            return result

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what is new, the prompt at first, and send memory in place of the history."""
        if not self.step:
            await sync_to_async(self._begin)(request_context.messages)
        self.answered = False
        return await super().before_model_request(ctx, request_context)

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Store the finished answer of this step."""
        response = await super().after_model_request(
            ctx, request_context=request_context, response=response
        )
        self.answered = True
        return response

    def _sending(self, request_context: ModelRequestContext) -> ModelRequestContext:
        """Keep the agent's system prompts, which are never stored, before all else."""
        told = [
            part
            for message in request_context.messages
            for part in message.parts
            if isinstance(part, SystemPromptPart)
        ]
        sending = super()._sending(request_context)
        if not told or sending is request_context:
            return sending
        return replace(sending, messages=[ModelRequest(parts=told), *sending.messages])

    def _fitted(self, view: View) -> View:
        return super()._fitted(replace(view, actor_model=self.model_name))

    def _begin(self, messages: Sequence[ModelMessage]) -> None:
        """Store the prompt; an empty thread takes the history it is given with it."""
        self.at = timezone.now()
        with transaction.atomic():
            state = read(self.thread_id)
            self.early = self._early()
            if state.thread.last_position:
                new = self._prompt(messages[-1], gap_before(state, self.at))
            else:
                new = [bare for message in messages if (bare := _bare(message)) is not None]
            stored = append(self.thread_id, new, at=self.at, model=self.model_name)
            last = state.thread.last_position
            self.prompt_position = stored[-1].position if stored else last + 1

    def _early(self) -> Early:
        try:
            view = look(self.thread_id)
            return Early() if view is None else early_of(self._fitted(view), self.at)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            # To show memory ahead of its threshold only saves tokens: else the threshold decides.
            logger.exception("Nothing is shown early in thread %s.", self.thread_id)
            return Early()

    def _prompt(self, message: ModelMessage, gap: str) -> list[ModelMessage]:
        """Return the prompt as it fits the thread: results of open calls, and of no others."""
        waiting = {call.tool_call_id: call for call in _open_calls(self.thread_id)}
        bare = _bare(message)
        if isinstance(bare, ModelRequest):
            parts = [p for p in bare.parts if _call_of(p) is None or _call_of(p) in waiting]
            answered = {_call_of(part) for part in parts}
            waiting = {key: call for key, call in waiting.items() if key not in answered}
            bare = _marked(replace(bare, parts=parts), gap, self.at) if parts else None
        closing = [interrupted_returns([*waiting.values()], self.at)] if waiting else []
        return [*closing, *([] if bare is None else [bare])]

    async def _end_failed(self, messages: Sequence[ModelMessage]) -> None:
        try:
            await sync_to_async(self._end)(messages, failed=True)
        except Exception:
            # What failed the run is what its caller must hear of; the next run closes the calls.
            logger.exception("The end of a run in thread %s was not stored.", self.thread_id)

    def _end(self, messages: Sequence[ModelMessage], *, failed: bool) -> None:
        """Store what no step stored, close what a failed run left open, and wake the Observer."""
        if not self.step:
            return
        new = self._unstored(messages, failed=failed)
        with transaction.atomic():
            append(self.thread_id, new, at=timezone.now(), model=self.model_name)
            left = _open_calls(self.thread_id) if failed else []
            if left:
                append(self.thread_id, [interrupted_returns(left)], at=timezone.now())
            dispatch(self.thread_id)

    def _unstored(self, messages: Sequence[ModelMessage], *, failed: bool) -> list[ModelMessage]:
        if self.answered:
            # The results of the last answer's tools, which no further step has stored.
            return [bare for m in newest(messages) if (bare := _bare(m)) is not None]
        last = messages[-1] if messages else None
        if not failed or not isinstance(last, ModelResponse):
            return []
        # An answer that broke off: what it said counts, its calls were never made.
        said = [part for part in last.parts if isinstance(part, TextPart) and part.content.strip()]
        return [replace(last, parts=said)] if said else []


def _resolving(model: Any) -> Resolve:
    def resolve(name: str) -> Model:
        return model if name == AGENT else resolve_model(name)

    return resolve


def _bare(message: ModelMessage) -> ModelMessage | None:
    """Return a message without system prompts; None when nothing is left."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts) if parts else None


def _marked(prompt: ModelRequest, gap: str, at: Any) -> ModelRequest:
    """Return a prompt that says how long nothing was said before it."""
    if not gap:
        return prompt
    marker = user_prompt("", at, gap=gap).parts[0]
    noted = {**(prompt.metadata or {}), GAP: gap}
    return replace(prompt, parts=[marker, *prompt.parts], metadata=noted)


def _call_of(part: Any) -> str | None:
    """Return the call a part is the result of."""
    if isinstance(part, ToolReturnPart):
        return part.tool_call_id
    if isinstance(part, RetryPromptPart) and part.tool_name is not None:
        return part.tool_call_id
    return None


def _open_calls(thread_id: UUID) -> Sequence[Any]:
    """Return the calls of the last answer that have no result; earlier ones all have."""
    answers = Message.objects.filter(thread=thread_id, kind=Message.Kind.RESPONSE)
    last = answers.order_by("-position").first()
    if last is None:
        return []
    since = Message.objects.above(thread_id, last.position - 1)
    return open_calls([load(message.payload) for message in since])


_Locks = WeakValueDictionary[UUID, asyncio.Lock]
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Locks] = WeakKeyDictionary()
_inside: ContextVar[frozenset[UUID]] = ContextVar("threads_of_this_run", default=frozenset())


@asynccontextmanager
async def _alone(thread_id: UUID) -> AsyncIterator[None]:
    """Let one run at a time into a thread. Raises ThreadBusy where that would be for ever."""
    if thread_id in _inside.get():
        raise ThreadBusy(
            "A tool started another run in the same thread, which would wait for ever for the "
            "run it is part of: give it a thread of its own."
        )
    of_loop = _locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    lock = of_loop.setdefault(thread_id, asyncio.Lock())
    async with lock:
        token = _inside.set(_inside.get() | {thread_id})
        try:
            yield
        finally:
            _inside.reset(token)
