"""Tell a turn as server-sent events while it happens.

The rows are the truth: every event of the thread, and a timer, make them be read again, so that
a lost event costs two seconds and nothing else. What the agent is saying just now comes with the
events themselves, and is corrected by the message once it is stored. No database thread is
held while nothing happens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.core.serializers.json import DjangoJSONEncoder

from agents.models import Turn
from memory.models import Message
from memory.publish import thread_group

from .shapes import answered, said, turn_out

OPEN = (Turn.Status.WAITING, Turn.Status.RUNNING)
CHECK_SECONDS = 2.0
ALIVE_SECONDS = 15.0
MOVING = {
    "turn.queued",
    "turn.started",
    "turn.closed",
    "turn.withdrawn",
    "messages.appended",
    "memory.erased",
}
RETURNS = ("tool-return", "retry-prompt")
GONE = "This conversation is gone."

Events = Iterator[tuple[str, dict[str, Any]]]


@dataclass
class Told:
    """Hold what was told of a turn so far; ``step`` counts the agent's responses."""

    status: str = ""
    after: int = 0
    step: int = 1
    draft: str = ""
    payloads: list[Mapping[str, Any]] = field(default_factory=list)

    def hear(self, delta: Mapping[str, Any]) -> Events:
        """Yield what is new in a text just heard; nothing when the rows must be read first."""
        if delta["after"] == self.after:
            yield from self._say(delta["text"])

    def _say(self, text: str) -> Events:
        if text.startswith(self.draft) and len(text) > len(self.draft):
            new, self.draft = text[len(self.draft) :], text
            yield "delta", {"step": self.step, "text": new}

    def see(self, turn: Turn, rows: list[Message]) -> Events:
        """Yield what rows read now tell beyond what was told."""
        if turn.status != self.status:
            self.status = turn.status
            yield "turn", {"number": turn.number, "status": turn.status}
        self.after = max(self.after, turn.first_position or 0)
        for row in rows:
            yield from self._message(row)
        if turn.draft_text and not rows:
            yield from self._say(turn.draft_text)

    def _message(self, row: Message) -> Events:
        self.after = row.position
        if row.kind != Message.Kind.RESPONSE:
            yield from _results(row)
            return
        text = said(row.payload)
        yield from self._say(text)
        yield "message", {"step": self.step, "position": row.position, "text": text}
        yield from _calls(row)
        self.payloads.append(row.payload)
        self.step, self.draft = self.step + 1, ""

    def end(self, turn: Turn) -> dict[str, Any]:
        """Return the turn as it ended."""
        return turn_out(turn, answered(self.payloads))


def _calls(row: Message) -> Events:
    for part in row.payload["parts"]:
        if part["part_kind"] == "tool-call":
            yield (
                "tool_call",
                {"id": part["tool_call_id"], "name": part["tool_name"], "args": part.get("args")},
            )


def _results(row: Message) -> Events:
    for part in row.payload["parts"]:
        if part["part_kind"] in RETURNS and part.get("tool_name"):
            yield (
                "tool_result",
                {
                    "id": part["tool_call_id"],
                    "name": part["tool_name"],
                    "content": part.get("content"),
                },
            )


class Ear(Protocol):
    """Describe what events are heard with."""

    async def hear(self, seconds: float) -> Mapping[str, Any] | None: ...


async def follow(thread_id: UUID, number: int) -> AsyncGenerator[str]:
    """Yield the events of a turn until it ends, as they are sent."""
    async with listening(thread_id) as ear:
        async for name, content in tell(thread_id, number, ear):
            yield written(name, content)


async def tell(
    thread_id: UUID, number: int, ear: Ear, *, check_seconds: float = CHECK_SECONDS
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the name and content of each event of a turn until it ends."""
    told = Told()
    sent_at = monotonic()
    while True:
        turn, rows = await _read(thread_id, number, told.after)
        if turn is None:
            yield "error", {"detail": GONE}
            return
        for event in told.see(turn, rows):
            sent_at = monotonic()
            yield event
        if turn.status not in OPEN:
            yield "end", told.end(turn)
            return
        async for event in _heard(told, number, ear, check_seconds):
            sent_at = monotonic()
            yield event
        if monotonic() - sent_at >= ALIVE_SECONDS:
            sent_at = monotonic()
            yield "", {}


async def _heard(
    told: Told, number: int, ear: Ear, seconds: float
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield what is said until something moved that is in the rows, or it is time to look."""
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0:
        event = await ear.hear(left)
        if event is None or event["kind"] in MOVING:
            return
        if event["kind"] == "turn.delta" and event["turn"] == number:
            if event["after"] > told.after:
                return
            for each in told.hear(event):
                yield each


async def _read(thread_id: UUID, number: int, after: int) -> tuple[Turn | None, list[Message]]:
    found: tuple[Turn | None, list[Message]] = await database_sync_to_async(_rows)(
        thread_id, number, after
    )
    return found


def _rows(thread_id: UUID, number: int, after: int) -> tuple[Turn | None, list[Message]]:
    """Return a turn and its messages after a position; the turn first, for the rows move on."""
    turn = Turn.objects.filter(thread=thread_id, number=number).first()
    if turn is None or turn.first_position is None:
        return turn, []
    rows = Message.objects.above(thread_id, max(after, turn.first_position))
    if turn.last_position is not None:
        rows = rows.filter(position__lte=turn.last_position)
    return turn, list(rows)


class LayerEar:
    """Hear the events of a thread on the channel layer."""

    def __init__(self, layer: Any, channel: str) -> None:
        self._layer, self._channel = layer, channel

    async def hear(self, seconds: float) -> Mapping[str, Any] | None:
        """Return the next event; None when none came in so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                frame = await self._layer.receive(self._channel)
        except TimeoutError:
            return None
        event: Mapping[str, Any] = frame["event"]
        return event


@asynccontextmanager
async def listening(thread_id: UUID) -> AsyncIterator[LayerEar]:
    """Hear what happens in a thread while the block runs."""
    layer: Any = get_channel_layer()
    channel, group = await layer.new_channel("stream"), thread_group(thread_id)
    await layer.group_add(group, channel)
    try:
        yield LayerEar(layer, channel)
    finally:
        await layer.group_discard(group, channel)


def written(name: str, content: Mapping[str, Any]) -> str:
    """Return an event as it is sent; one without a name only keeps the connection open."""
    if not name:
        return ": still here\n\n"
    text = json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False)
    return f"event: {name}\ndata: {text}\n\n"
