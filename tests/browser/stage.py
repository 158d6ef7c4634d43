"""Serve the pages while conversations are played on command; run as a program.

Reads lines ``new SEED``, ``play THREAD STEPS`` and ``stream THREAD WORDS`` and answers each
with one line. Turns and
cycles run only as the play wants them to, so the server does no background work.
"""

import asyncio
import os
import sys
from datetime import timedelta
from threading import Thread as SystemThread
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

import django

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402 - Django must be set up first
from django.utils import timezone  # noqa: E402

from agents.events import TurnDelta  # noqa: E402
from agents.models import Turn  # noqa: E402
from agents.services.thread import start  # noqa: E402
from memory.messages import user_prompt  # noqa: E402
from memory.publish import send  # noqa: E402
from memory.services.append import append  # noqa: E402
from omsite.asgi import application  # noqa: E402
from omsite.ending import EndingServer  # noqa: E402
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
        if command == "stream":
            await self.stream(UUID(words[0]), int(words[1]))
            return "streamed"
        play = self.plays[words[0]]
        for _ in range(int(words[1])):
            await play.step()
            await asyncio.sleep(0.01)
        return " ".join(play.happened)

    async def stream(self, thread_id, count):
        """Answer in a thread as an Actor does that says a word every 10 ms."""
        await sync_to_async(begin)(thread_id)
        text = ""
        for number in range(count):
            text += f"word{number} " if number % 12 else f"**word{number}**.\n\n"
            await send(TurnDelta(thread=thread_id, turn=1, after=1, text=text))
            await asyncio.sleep(0.01)


def begin(thread_id):
    """Let a turn be under way in an empty thread."""
    now = timezone.now()
    append(thread_id, [user_prompt("Tell me everything.", now)], at=now)
    Turn.objects.create(
        thread_id=thread_id,
        number=1,
        status="running",
        prompt="Tell me everything.",
        first_position=1,
        started_at=now,
        lease_token=thread_id,
        lease_expires_at=now + timedelta(hours=1),
    )


def listen(stage, loop):
    for line in sys.stdin:
        done = asyncio.run_coroutine_threadsafe(stage.obey(*line.split()), loop)
        print(done.result(), flush=True)


def main(port):
    resource, _ = make()
    server = EndingServer(
        application=application, endpoints=[f"tcp:port={port}:interface=127.0.0.1"]
    )
    server.ready_callable = lambda: SystemThread(
        target=listen, args=(Stage(resource), asyncio.get_event_loop()), daemon=True
    ).start()
    server.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
