"""Build the agent a person talks to."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model

from memory import telemetry
from memory.capability import TurnMemory
from memory.config import MemoryOptions

from .models import AgentProfile
from .steps import Steps
from .tools import Deps, tools_named


def build(
    profile: AgentProfile,
    *,
    model: Model,
    memory: TurnMemory | None = None,
    options: MemoryOptions | None = None,
) -> Agent[Deps, Any]:
    """Return the Actor of a profile for one turn, with the tools its memory options allow.

    Without memory it is one that remembers nothing and of which nothing is stored.
    """
    abilities: list[AbstractCapability[Any]] = [] if memory is None else [memory]
    if abilities and telemetry.is_watched():
        abilities.insert(0, Steps())
    return Agent(
        model,
        deps_type=Deps,
        name=profile.slug or None,
        instructions=profile.instructions,
        tools=tools_named(profile.tools, options),
        capabilities=abilities,
    )
