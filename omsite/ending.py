"""End a serving process soon, whatever is open or running.

Requests are answered, sockets closed, and what takes too long is left. Nothing is lost by it:
turns and cycles are rows with leases, and the next process takes them up.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
from collections.abc import Awaitable, Callable
from threading import Timer
from typing import Any

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import defer, reactor
from twisted.internet.tcp import Server as Connection

from omsite.server import Server

logger = logging.getLogger(__name__)

END_SECONDS = 5.0
GOING_AWAY = 1001

Send = Callable[[dict[str, Any]], Awaitable[None]]


class EndingServer(Server):
    """Serve, and end only when the requests under way are answered."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ports: list[Any] = []

    def listen_success(self, port: Any) -> None:
        """Remember where newcomers arrive."""
        self._ports.append(port)
        super().listen_success(port)

    def kill_all_applications(self) -> defer.Deferred[Any]:
        """Close sockets, take nothing new and let requests be answered; fires when all is done.

        Daphne's own cancels requests too, stops at the first connection without an application,
        and waits only for the first that ends. The loop then stopped under the others, whose
        threads wait for it: the process never ended.
        """
        self.application = refuse
        self._send_away()
        under_way = []
        for protocol, connection in self.connections.items():
            application = connection.get("application_instance")
            if application is None:
                continue
            under_way.append(application)
            if isinstance(protocol, WebSocketProtocol):
                application.cancel()
        return defer.Deferred.fromFuture(asyncio.gather(*under_way, return_exceptions=True))

    def _send_away(self) -> None:
        """Close the door and idle connections, so that a proxy goes elsewhere."""
        for port in self._ports:
            port.stopListening()
        here: Any = reactor
        connections = (each for each in here.getReaders() if isinstance(each, Connection))
        for connection in connections:
            if getattr(connection.protocol, "requests", None) == []:
                connection.loseConnection()  # type: ignore[no-untyped-call]


async def refuse(scope: dict[str, Any], receive: object, send: Send) -> None:
    """Turn away whoever comes while the server ends."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": GOING_AWAY})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"5")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"The server restarts. Try again."})


def end_within(seconds: float = END_SECONDS) -> Timer:
    """End the process by force if it has not ended by then; return what will do so.

    A thread cannot be cancelled, and Python waits for every one: for one that waits for a
    database's lock or for a model, that can be long.
    """
    timer = Timer(seconds, _end_now, (seconds,))
    timer.daemon = True
    timer.start()
    return timer


def _end_now(seconds: float) -> None:
    logger.warning("Work still ran %s seconds after the server was told to end: left.", seconds)
    faulthandler.dump_traceback(all_threads=True)
    os._exit(0)
