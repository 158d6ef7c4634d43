"""Define the tools an Actor may call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.utils import timezone
from pydantic_ai import RunContext

from memory.services.recall import recall as recall_messages

NOTHING_FOUND = "No message of this conversation matches."


@dataclass(frozen=True)
class Deps:
    """Hold what tools may know of the conversation they are called in."""

    thread_id: UUID
    zone: ZoneInfo


async def current_time(ctx: RunContext[Deps]) -> str:
    """Return the current date and time in the user's time zone."""
    return timezone.now().astimezone(ctx.deps.zone).strftime("%A, %B %-d, %Y, %H:%M (%Z)")


async def recall(
    ctx: RunContext[Deps], query: str = "", first: int | None = None, last: int | None = None
) -> str:
    """Return the exact earlier messages of this conversation.

    Use it when the wording itself matters, or when an observation leaves out a detail.

    Args:
        query: Words to look for. Any of them may match.
        first: Number of the first message wanted, instead of a query.
        last: Number of the last message wanted.
    """
    found = await sync_to_async(recall_messages)(
        ctx.deps.thread_id, query=query, first=first, last=last
    )
    if not found:
        return NOTHING_FOUND
    return "\n\n".join(
        f"[{message.position}] {'User' if message.kind == 'request' else 'Assistant'} "
        f"({message.at.astimezone(ctx.deps.zone):%Y-%m-%d %H:%M}): {message.text}"
        for message in found
    )


TOOLS: dict[str, Callable[..., Any]] = {"current_time": current_time, "recall": recall}


def tools_named(names: Sequence[str]) -> list[Callable[..., Any]]:
    """Return the tools of these names; names nobody knows are left out."""
    return [TOOLS[name] for name in names if name in TOOLS]
