"""Let each step of a turn be seen as one: its request prepared, answered and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.capabilities.abstract import WrapModelRequestHandler
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext

from memory import telemetry


@dataclass
class Steps(AbstractCapability[Any]):
    """Tell whoever watches of each step of a run; the model's own span is within it."""

    def get_ordering(self) -> CapabilityOrdering:
        """Stand around everything else, pydantic-ai's own spans included."""
        return CapabilityOrdering(position="outermost", wraps=[Instrumentation])

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        """Take one step."""
        with telemetry.stepping():
            return await handler(request_context)
