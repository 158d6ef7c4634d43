"""Build the agent a person talks to."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models import Model

from memory.capability import ObservationalMemory

from .models import AgentProfile
from .tools import Deps, tools_named


def build(profile: AgentProfile, *, model: Model, memory: ObservationalMemory) -> Agent[Deps, Any]:
    """Return the Actor of a profile for one turn."""
    return Agent(
        model,
        deps_type=Deps,
        instructions=profile.instructions,
        tools=tools_named(profile.tools),
        capabilities=[memory],
    )
