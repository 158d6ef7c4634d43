"""Give a pydantic-ai agent Observational Memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.utils import timezone
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestContext

from memory.models import Message
from memory.services.append import Fence, append, no_fence
from memory.services.cycles import Resolve, resolve_model
from memory.services.observe import observe_while_waiting
from memory.services.prepare import Prepared, prepare

Recorder = Callable[[int, Prepared], None]
Stored = Callable[[Message], None]


@dataclass(init=False)
class ObservationalMemory(AbstractCapability[Any]):
    """Store every finished message of one run and send memory instead of the whole history.

    Made for one run. The prompt is stored by the caller, at ``prompt_position``. ``record``
    is told each request, ``stored`` each message once it is safe; ``fence`` raises when the
    run lost its right to write. All three are called in the database's thread.
    """

    def __init__(
        self,
        thread_id: UUID,
        *,
        prompt_position: int,
        at: datetime,
        fence: Fence = no_fence,
        record: Recorder | None = None,
        stored: Stored | None = None,
        resolve: Resolve = resolve_model,
    ) -> None:
        self.id = None
        self.description = None
        self.defer_loading = False
        self.thread_id = thread_id
        self.prompt_position = prompt_position
        self.at = at
        self.fence = fence
        self.record = record
        self.stored = stored
        self.resolve = resolve
        self.step = 0
        self.waited = False

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what the tools returned, then replace the history by what memory makes of it."""
        if self.step:
            # The newest message is the one the graph just made; the request's list is never
            # counted, since ours replaces it at every step.
            await sync_to_async(self._store)(request_context.messages[-1])
        self.step += 1
        prepared = await sync_to_async(self._prepare)()
        if prepared.wait_seconds:
            self.waited = True
            await observe_while_waiting(
                self.thread_id, seconds=prepared.wait_seconds, resolve=self.resolve
            )
            prepared = await sync_to_async(self._prepare)()
        return replace(request_context, messages=prepared.messages)

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Store the finished answer of this step."""
        await sync_to_async(self._store)(response)
        return response

    def _prepare(self) -> Prepared:
        prepared = prepare(
            self.thread_id,
            prompt_position=self.prompt_position,
            at=self.at,
            may_wait=not self.waited,
            fence=self.fence,
        )
        if self.record is not None and not prepared.wait_seconds:
            self.record(self.step, prepared)
        return prepared

    def _store(self, message: ModelMessage) -> None:
        stored = append(self.thread_id, [message], at=timezone.now(), fence=self.fence)
        if self.stored is not None:
            self.stored(stored[0])
