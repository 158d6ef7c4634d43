"""Serve the site and do its background work in one process."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from twisted.internet import defer, reactor

from omsite.background import Background
from omsite.ending import END_SECONDS, EndingServer, end_within

SOCKET_SECONDS = 24 * 60 * 60


class Command(BaseCommand):
    """Serve the site until it is interrupted."""

    help = "Serve the site with Daphne, background work included. Ctrl-C ends it cleanly."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        # WhiteNoise wants the folder of collected files to be there, even empty.
        settings.STATIC_ROOT.mkdir(exist_ok=True)
        from omsite.asgi import application

        hook: Any = reactor
        address = host.replace(":", r"\:")
        server = EndingServer(
            application=application,
            endpoints=[f"tcp:port={port}:interface={address}"],
            # Said from inside the running loop: from then on Ctrl-C is an orderly end.
            ready_callable=lambda: hook.callWhenRunning(self._ready, host, port),
            websocket_timeout=SOCKET_SECONDS,
            # Up to twice the limit the page is told so in a frame; past that, by the close code.
            websocket_max_message_size=2 * settings.FRAME_BYTES,
            websocket_max_frame_size=2 * settings.FRAME_BYTES,
            server_name="omsite",
        )
        server.run()
        if server.abort_start:
            raise CommandError(f"Port {port} is taken. Choose another one: make studio PORT=8001")

    def _ready(self, host: str, port: int) -> None:
        background = Background(asyncio.get_event_loop())
        background.start()
        _before_shutdown(background)
        self.stdout.write(f"omsite is ready: http://{host}:{port}/  (Ctrl-C ends it)")
        sys.stdout.flush()


def _before_shutdown(background: Background) -> None:
    def stop() -> defer.Deferred[None]:
        # Beside others nobody waits for this process to be gone, and somebody for its answers.
        patience = 0.0 if settings.EMBEDDED else settings.CONFIG.om_drain_seconds
        end_within(patience + END_SECONDS)
        return defer.Deferred.fromFuture(asyncio.ensure_future(background.stop(patience)))

    hook: Any = reactor
    hook.addSystemEventTrigger("before", "shutdown", stop)
