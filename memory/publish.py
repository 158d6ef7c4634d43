"""Send events to the pages that show their thread or record, after commit.

A publish can be lost, since a process may die between commit and send; pages therefore
compare what they show with the rows now and then, and nothing depends on an event.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from time import monotonic
from uuid import UUID
from weakref import WeakKeyDictionary

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from .events import Event

logger = logging.getLogger(__name__)

SEND_SECONDS = 3.0
REST_SECONDS = 5.0


class Rest:
    """Leave a server that failed alone for a moment, so that not everybody waits for it."""

    def __init__(self, seconds: float = REST_SECONDS) -> None:
        self._seconds = seconds
        self._until = float("-inf")

    def begin(self) -> None:
        """Rest from now on."""
        self._until = monotonic() + self._seconds

    @property
    def lasts(self) -> bool:
        """Tell whether it is not over yet."""
        return monotonic() < self._until


_RESTS: WeakKeyDictionary[object, Rest] = WeakKeyDictionary()


def thread_group(thread_id: UUID) -> str:
    """Name the group that watches a thread."""
    return f"thread.{thread_id.hex}"


def record_group(record_id: UUID) -> str:
    """Name the group that watches a record."""
    return f"record.{record_id.hex}"


class LoopPublisher:
    """Send events on one event loop, in order, without holding up the thread that committed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Event] = deque()
        self._woken = False
        self._sending: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        """Take an event from any thread."""
        self._waiting.append(event)
        # Waking the loop costs more than all else here: once is enough for what comes together.
        if not self._woken:
            self._woken = True
            # The caller's context holds asgiref's marks of the thread it runs in.
            self._loop.call_soon_threadsafe(self._wake, context=Context())

    def _wake(self) -> None:
        # First this, then the look at what waits: an event is never left to nobody.
        self._woken = False
        if self._sending is None or self._sending.done():
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            await send(self._waiting.popleft())


def _send_now(event: Event) -> None:
    async_to_sync(send)(event)


_publisher: Callable[[Event], None] = _send_now


def publish_with(publisher: Callable[[Event], None] | None) -> None:
    """Send events with a publisher from now on; with None, each in the thread that commits."""
    global _publisher
    _publisher = publisher or _send_now


def publish(event: Event) -> None:
    """Send an event once the surrounding transaction is committed."""
    transaction.on_commit(lambda: _publisher(event), robust=True)


async def send(event: Event, *, seconds: float = SEND_SECONDS) -> None:
    """Send an event now, unless whoever carries events failed a moment ago."""
    layer = get_channel_layer()
    if layer is None or (rest := _RESTS.setdefault(layer, Rest())).lasts:
        return
    frame = {"type": "memory.event", "event": event.model_dump(mode="json")}
    try:
        async with asyncio.timeout(seconds):
            await layer.group_send(thread_group(event.thread), frame)
            if event.record is not None:
                await layer.group_send(record_group(event.record), frame)
    except Exception as error:  # noqa: BLE001 - whichever way a server is away, it is away
        # A lost event costs a page two seconds; it must never undo a commit, nor hold up a turn.
        rest.begin()
        logger.warning(
            "The event %s was not delivered (%s). None is sent for %s seconds; pages compare "
            "themselves with the rows meanwhile.",
            event.kind,
            type(error).__name__,
            REST_SECONDS,
        )
