"""Define the tools an Actor may call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone
from pydantic_ai import RunContext, Tool

from memory.config import MemoryOptions
from memory.recall_tool import recall_tool
from memory.services.recall import retrieval_of

RECALL = "recall"


@dataclass(frozen=True)
class Deps:
    """Hold what tools may know of the conversation they are called in."""

    thread_id: UUID
    zone: ZoneInfo


async def current_time(ctx: RunContext[Deps]) -> str:
    """Return the current date and time in the user's time zone."""
    return timezone.now().astimezone(ctx.deps.zone).strftime("%A, %B %-d, %Y, %H:%M (%Z)")


def _thread_of(ctx: RunContext[Deps]) -> UUID:
    return ctx.deps.thread_id


TOOLS: dict[str, Tool[Any]] = {
    "current_time": Tool(current_time),
    RECALL: recall_tool(_thread_of),
}

RECALL_HERE = recall_tool(_thread_of, scope="thread")


def tools_named(names: Sequence[str], options: MemoryOptions | None = None) -> list[Tool[Any]]:
    """Return the tools of these names; names nobody knows are left out.

    ``recall`` is left out too when the options switch it off. Without options the model is
    shown all of it, and what it may reach is decided when it calls.
    """
    return [tool for name in names if (tool := _tool(name, options)) is not None]


def _tool(name: str, options: MemoryOptions | None) -> Tool[Any] | None:
    if name != RECALL or options is None:
        return TOOLS.get(name)
    allowed = retrieval_of(options)
    if allowed is None:
        return None
    return RECALL_HERE if allowed.scope == "thread" else TOOLS[RECALL]
