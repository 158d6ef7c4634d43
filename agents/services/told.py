"""Write down what every request of an agent holds besides messages: instructions and tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from inspect import iscoroutine
from typing import Any, cast

from pydantic_ai import Tool
from pydantic_ai.tools import ToolDefinition

from memory.config import MemoryOptions
from memory.models.blob import digest
from memory.services.request import Prepared
from memory.tokens import count

from ..models import AgentProfile
from ..tools import tools_named

INSTRUCTIONS = "instructions"
TOOLS = "tools"
KINDS = (INSTRUCTIONS, TOOLS)


@dataclass(frozen=True)
class Told:
    """Hold one text that goes with every request of an agent."""

    kind: str
    text: str
    source: str

    @property
    def tokens(self) -> int:
        """Return what the text costs each time it is sent."""
        return _count(self.text)

    @property
    def hash(self) -> str:
        """Return the key the text is kept under."""
        return digest(self.text)

    def summary(self) -> dict[str, Any]:
        """Return the block as JSON, its text by hash."""
        named = {"kind": self.kind, "source": self.source}
        return {**named, "tokens": self.tokens, "hash": self.hash}


def told(profile: AgentProfile | None, options: MemoryOptions | None) -> tuple[Told, ...]:
    """Return what an agent's model is told at every request, as its memory options allow.

    Without options the agent's tools are all shown. Nothing is told by an agent that is gone.
    """
    return () if profile is None else tuple(_told(profile, tools_named(profile.tools, options)))


def _told(profile: AgentProfile, tools: Sequence[Tool[Any]]) -> Iterator[Told]:
    source = f"agent {profile.slug}"
    if profile.instructions:
        yield Told(INSTRUCTIONS, profile.instructions, source)
    shown = [definition for tool in tools if (definition := _definition(tool)) is not None]
    if shown:
        yield Told(TOOLS, json.dumps([_written(definition) for definition in shown]), source)


def _definition(tool: Tool[Any]) -> ToolDefinition | None:
    """Return a tool as models are shown it; None when they are not."""
    if tool.prepare is None:
        return tool.tool_def
    # No run has begun, so there is no context; the tools here need none, and wait for nothing.
    prepare: Callable[[Any, ToolDefinition], object] = tool.prepare
    prepared = prepare(None, tool.tool_def)
    if not iscoroutine(prepared):
        return cast("ToolDefinition | None", prepared)
    try:
        prepared.send(None)
    except StopIteration as done:
        return cast("ToolDefinition | None", done.value)
    return tool.tool_def


def _written(shown: ToolDefinition) -> dict[str, Any]:
    return {
        "name": shown.name,
        "description": shown.description,
        "parameters": shown.parameters_json_schema,
    }


def request_hash(told: Sequence[Told], prepared: Prepared) -> str:
    """Return one hash of all that a request holds."""
    parts = [f"{each.kind} {each.hash}" for each in told]
    return sha256("\n".join([*parts, prepared.hash]).encode()).hexdigest()


_count = lru_cache(maxsize=256)(count)
