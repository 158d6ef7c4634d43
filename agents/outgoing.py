"""Send frames to one page no faster than it reads them, and keep little for it meanwhile.

A page whose network is slow, or whose tab sleeps, must not hold up the others nor fill the
server's memory. Whoever has something for a page leaves it here and goes on. Regions wait under
their name, so that a newer one takes the place of an older: however long a page does not read, it
has at most one of each coming, which all pages of a room share. What a page was sent before is
known when the next leaves, so that of a long region it is told only what changed, if that is what
it has. Answers wait in order, and few.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from agents.live import Rendered

logger = logging.getLogger(__name__)

#: How many answers may wait for a page that asks on and on without reading any.
MOST_ANSWERS = 64

Send = Callable[..., Awaitable[None]]


class Outgoing:
    """Hold what is to be sent to one page; ``send`` returns once the page can take more."""

    def __init__(self, send: Send, *, most: int = MOST_ANSWERS) -> None:
        self._send = send
        self._most = most
        self._answers: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._regions: dict[str, Rendered] = {}
        self._sent: dict[str, str] = {}
        self._sending: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Return how many answers and regions wait."""
        return len(self._answers) + len(self._regions)

    def show(self, regions: Iterable[Rendered]) -> None:
        """Send regions soon, in one frame with what else changes until then."""
        self._regions.update((each.name, each) for each in regions)
        self._wake()

    def has(self, etags: Mapping[str, str]) -> None:
        """Take what the page says it shows for what it was sent."""
        self._sent = dict(etags)

    def say(self, kind: str, **fields: Any) -> bool:
        """Send an answer soon; return False, with nothing kept, when too many wait."""
        if len(self._answers) >= self._most:
            return False
        self._answers.append((kind, fields))
        self._wake()
        return True

    async def settle(self, seconds: float) -> None:
        """Wait until all is sent, but no longer than some seconds."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=seconds)

    def stop(self) -> None:
        """Send nothing more: the page is gone."""
        self._answers.clear()
        self._regions.clear()
        if self._sending is not None:
            self._sending.cancel()

    def _wake(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._answers or self._regions:
                kind, fields = self._next()
                await self._send(kind, **fields)
        except Exception:
            # The socket is closing; the page comes back and says what it has.
            logger.warning("A frame could not be sent.", exc_info=True)

    def _next(self) -> tuple[str, Mapping[str, Any]]:
        if self._answers:
            return self._answers.popleft()
        regions, self._regions = self._regions, {}
        content: list[str] = []
        patched: dict[str, Mapping[str, str]] = {}
        for name, region in regions.items():
            patch = region.patch
            if patch is not None and self._sent.get(name) == patch.base:
                content.append(patch.html)
                patched[name] = {"base": patch.base, **patch.attributes}
            else:
                content.append(region.partial)
            self._sent[name] = region.etag
        fields: dict[str, Any] = {"content": "".join(content)}
        return "render", {**fields, "patched": patched} if patched else fields
