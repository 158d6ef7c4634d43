"""Count the open sockets of each person in this process.

What the limit protects is the memory and the files of one process, so each counts its own: there
is nothing to go stale when another is killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
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
        reached = too_many_pages(settings.SOCKETS_PER_USER, self._open[person])
        if reached is None:
            self._open[person] += 1
        return reached

    def leave(self, person: Hashable) -> None:
        """Count one less."""
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]


#: Those of this process.
sockets = Sockets()


class CountedConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Count the sockets of a person for as long as they are open, however they end."""

    _counted: Hashable = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._counted is not None:
                sockets.leave(self._counted)

    def count(self, person: Hashable) -> Reached | None:
        """Count this socket, or return the limit that it meets."""
        reached = sockets.enter(person)
        if reached is None:
            self._counted = person
        return reached
