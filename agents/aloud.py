"""Let people hear an answer while a model gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from memory.telemetry import calling

Hear = Callable[[ModelResponseStreamEvent], Awaitable[None]]


class Aloud(WrapperModel):
    """Stream every request of a run that itself is not streamed.

    A streamed run leads each event through tasks, locks and generators of its own, for whoever
    may want to change it on the way. Nobody does here, and that cost more than all else
    pydantic-ai does for a turn.

    A model that says nothing for ``silence`` seconds took too long; 0: it may be silent for ever.
    """

    def __init__(self, model: Model, hear: Hear, *, silence: float = 0.0) -> None:
        super().__init__(model)
        self._hear = hear
        self._silence = silence or None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the whole answer, with each piece heard as it came. Raises TimeoutError."""
        clock = asyncio.get_running_loop().time
        with calling("actor", self.model_name) as call:
            async with (
                asyncio.timeout(self._silence) as bound,
                self.wrapped.request_stream(
                    messages, model_settings, model_request_parameters
                ) as answer,
            ):
                async for event in answer:
                    call.heard()
                    await self._hear(event)
                    if self._silence is not None:
                        bound.reschedule(clock() + self._silence)
                response = answer.get()
            call.used(response.usage)
        return response
