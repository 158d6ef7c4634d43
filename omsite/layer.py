"""Carry events inside one process, from any of its threads."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.layers import InMemoryChannelLayer


class LoopSafeInMemoryLayer(InMemoryChannelLayer):
    """Deliver on the loop that receives, whichever thread sends.

    The stock layer puts into asyncio queues from foreign threads, which is not safe and
    wakes the receiver only when its loop happens to turn.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._home: asyncio.AbstractEventLoop | None = None

    async def group_add(self, group: str, channel: str) -> None:
        self._home = asyncio.get_running_loop()
        await super().group_add(group, channel)

    async def receive(self, channel: str) -> dict[str, Any]:
        self._home = asyncio.get_running_loop()
        return await super().receive(channel)

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        await self._at_home(super().send(channel, message))

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        await self._at_home(super().group_send(group, message))

    async def _at_home(self, sending: Any) -> None:
        home = self._home
        if home is None or home is asyncio.get_running_loop() or not home.is_running():
            await sending
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(sending, home))
