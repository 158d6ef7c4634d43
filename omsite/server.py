"""Serve with Daphne, letting whoever sends to a socket wait while its client does not read.

Daphne takes every frame at once and keeps in memory what the network does not take. Here a frame
is taken when those before it have left, so that the sender can choose what to send by then. While
frames wait, nothing is read from the client either: one that asks without reading is not answered
into memory. A client that stays away is cut off by the timeout of Daphne's pings.
"""

from __future__ import annotations

import asyncio
from typing import Any

from daphne import server
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer


@implementer(IPushProducer)
class Flow:
    """Tell whether a connection takes more; its transport says when that changes."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._free = asyncio.Event()
        self._free.set()

    def pauseProducing(self) -> None:
        """Stop: more waits than the transport wants to hold."""
        self._free.clear()
        self._transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Go on: everything has left."""
        self._free.set()
        self._transport.resumeProducing()

    def stopProducing(self) -> None:
        """Let go of whoever waits: the connection is lost."""
        self._free.set()

    async def free(self) -> None:
        """Wait until more can be sent, or never can."""
        await self._free.wait()


class Server(server.Server):  # type: ignore[misc]
    """Serve as Daphne does, with back-pressure on websockets."""

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Carry out what the application sends, and return when it may send more."""
        await super().handle_reply(protocol, message)
        match message["type"]:
            case "websocket.accept":
                _regulate(protocol)
            case "websocket.send":
                await _wait(protocol)


def _regulate(protocol: Any) -> None:
    transport = protocol.transport
    # The HTTP channel that the handshake came through regulated it until now.
    transport.unregisterProducer()
    protocol.flow = Flow(transport)
    transport.registerProducer(protocol.flow, True)


async def _wait(protocol: Any) -> None:
    flow: Flow | None = getattr(protocol, "flow", None)
    if flow is not None:
        await flow.free()
