"""Count the open sockets of each person in this process.

What the limit protects is the memory and the files of one process, so each counts its own: there
is nothing to go stale when another is killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing
from time import monotonic
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from agents.limits import Reached, too_many_pages


class Sockets:
    """Hold how many sockets each person has open; used on one event loop."""

    def __init__(self) -> None:
        self._open: Counter[Hashable] = Counter()

    def enter(self, person: Hashable) -> Reached | None:
        """Count one more, or return the limit that it meets."""
        reached = self.full(person)
        if reached is None:
            self._open[person] += 1
        return reached

    def full(self, person: Hashable) -> Reached | None:
        """Return the limit that one more would meet, without counting it."""
        return too_many_pages(settings.SOCKETS_PER_USER, self._open.get(person, 0))

    def leave(self, person: Hashable) -> None:
        """Count one less."""
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]


#: Those of this process.
sockets = Sockets()


async def counted(person: Hashable, stream: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Yield what a stream does, counted like a socket from its first piece to its end.

    One that is never begun, since its caller has gone, counts nothing.
    """
    full = sockets.enter(person)
    try:
        async with aclosing(stream):
            async for piece in stream:
                yield piece
    finally:
        if full is None:
            sockets.leave(person)


class CountedConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Count the sockets of a person for as long as they are open, and leave nothing of them.

    Channels tells a consumer of its end only when the browser closes; one whose handler raised,
    or that is cancelled, has to go all the same.
    """

    #: How long a person is taken to be who they were, and to see what they saw.
    recheck_seconds = 15.0

    groups: list[str]
    checked_at = float("-inf")
    _counted: Hashable = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._counted is not None:
                sockets.leave(self._counted)
            self.leave()
            for group in self.groups:
                await self.channel_layer.group_discard(group, self.channel_name)

    async def disconnect(self, code: int) -> None:
        self.groups = []  # Channels has just left them.

    def leave(self) -> None:
        """Hand back what the open socket holds; it may be asked more than once."""

    @property
    def in_doubt(self) -> bool:
        """Tell whether it is time to look again whether the person may see the page."""
        return monotonic() - self.checked_at > self.recheck_seconds

    def count(self, person: Hashable) -> Reached | None:
        """Count this socket, or return the limit that it meets."""
        reached = sockets.enter(person)
        if reached is None:
            self._counted = person
        return reached
