"""Serve the pages while conversations are played on command; run as a program.

Reads lines ``new SEED`` and ``play THREAD STEPS`` and answers each with one line. Turns and
cycles run only as the play wants them to, so the server does no background work.
"""

import asyncio
import os
import sys
from threading import Thread as SystemThread

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

import django

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402 - Django must be set up first
from daphne.server import Server  # noqa: E402

from agents.services.thread import start  # noqa: E402
from omsite.asgi import application  # noqa: E402
from tests.agents.play import Play, profile  # noqa: E402
from tests.browser.world import make  # noqa: E402


class Stage:
    """Hold the conversations that are being played."""

    def __init__(self, resource):
        self.resource = resource
        self.plays = {}

    async def obey(self, command, *words):
        if command == "new":
            thread = await sync_to_async(lambda: start(self.resource, profile()))()
            self.plays[str(thread.pk)] = Play(thread, int(words[0]))
            return str(thread.pk)
        play = self.plays[words[0]]
        for _ in range(int(words[1])):
            await play.step()
            await asyncio.sleep(0.01)
        return " ".join(play.happened)


def listen(stage, loop):
    for line in sys.stdin:
        done = asyncio.run_coroutine_threadsafe(stage.obey(*line.split()), loop)
        print(done.result(), flush=True)


def main(port):
    resource, _ = make()
    server = Server(application=application, endpoints=[f"tcp:port={port}:interface=127.0.0.1"])
    server.ready_callable = lambda: SystemThread(
        target=listen, args=(Stage(resource), asyncio.get_event_loop()), daemon=True
    ).start()
    server.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
