"""Hold many pages open, as a process of its own: chat in some, and time events that reach them.

Reads what to do as JSON from standard input and prints what it found as JSON. An event is timed
from its publishing, by this process into Redis, to the arrival of the region it changes.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.bench.texts import paragraph
from tests.fleet.people import Person

PROBE = re.compile(r"probe-(\d+)-")
AT_A_TIME = 20
ACCEPT_SECONDS = 30.0
#: Texts of probes grow: one that is no longer than the last is no news to a page.
FIRST_TURN = 1_000_000


@dataclass
class Found:
    """Hold what happened to all pages."""

    errors: Counter[str] = field(default_factory=Counter)
    frames: int = 0
    bytes: int = 0
    sent: int = 0
    taken: list[float] = field(default_factory=list)
    probes: dict[int, float] = field(default_factory=dict)
    heard: list[float] = field(default_factory=list)


@dataclass
class Page:
    """Hold one open page."""

    url: str
    person: Person
    thread: str
    found: Found
    socket: ClientConnection | None = None
    reading: asyncio.Task[None] | None = None
    waiting: dict[str, asyncio.Event] = field(default_factory=dict)

    async def open(self) -> None:
        """Connect as a browser does."""
        place = f"ws://{urlsplit(self.url).netloc}/ws/chat/{self.thread}/"
        headers = {"Cookie": self.person.cookies, "Origin": self.url}
        self.socket = await connect(
            place, additional_headers=headers, max_size=None, compression=None, open_timeout=60
        )
        self.reading = asyncio.create_task(self._read(self.socket))

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                self._hear(str(text))
        except ConnectionClosed:
            pass
        self.found.errors["closed by the server"] += 1

    def _hear(self, text: str) -> None:
        arrived = time.monotonic()
        self.found.frames += 1
        self.found.bytes += len(text)
        if (probe := PROBE.search(text)) is not None:
            sent = self.found.probes.get(int(probe[1]))
            if sent is not None:
                self.found.heard.append(arrived - sent)
            return
        if text.startswith('{"type": "accepted"'):
            self.waiting.pop(json.loads(text)["key"]).set()
        elif text.startswith('{"type": "error"'):
            self.found.errors[json.loads(text)["message"]] += 1

    async def say(self, text: str) -> None:
        """Send a message and wait until it is taken."""
        assert self.socket is not None
        key, began = str(uuid4()), time.monotonic()
        taken = self.waiting[key] = asyncio.Event()
        self.found.sent += 1
        try:
            await self.socket.send(json.dumps({"type": "send", "text": text, "key": key}))
            async with asyncio.timeout(ACCEPT_SECONDS):
                await taken.wait()
            self.found.taken.append(time.monotonic() - began)
        except (TimeoutError, ConnectionClosed) as error:
            self.found.errors[f"not taken: {type(error).__name__}"] += 1

    async def close(self) -> None:
        """Leave."""
        if self.reading is not None:
            self.reading.cancel()
        if self.socket is not None:
            await self.socket.close()


async def opened(pages: Sequence[Page]) -> None:
    """Open pages, some at a time."""
    few = asyncio.Semaphore(AT_A_TIME)

    async def open_one(page: Page) -> None:
        async with few:
            try:
                await page.open()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                page.found.errors[f"not opened: {type(error).__name__}"] += 1

    await asyncio.gather(*map(open_one, pages))


async def chat(page: Page, every: float, until: float, draw: random.Random) -> None:
    """Say something now and then."""
    await asyncio.sleep(draw.uniform(0, every))
    while time.monotonic() < until:
        began = time.monotonic()
        await page.say(paragraph(draw))
        await asyncio.sleep(max(0.0, began + every - time.monotonic()))


async def probe(threads: Sequence[str], rate: float, until: float, found: Found) -> None:
    """Publish events to threads in turn, so many a second."""
    from agents.events import TurnDelta
    from memory.publish import send

    number, began = 0, time.monotonic()
    while time.monotonic() < until:
        thread = threads[number % len(threads)]
        found.probes[number] = time.monotonic()
        text = f"probe-{number}- " + "A sentence that is being said. " * 10
        event = TurnDelta(thread=UUID(thread), turn=FIRST_TURN + number, after=0, text=text)
        await send(event)
        number += 1
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))


async def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Open the pages, let them chat and hear for a while, and say what happened."""
    found, draw = Found(), random.Random(1)
    people = [Person(**each) for each in asked["people"]]
    of = {thread: person for person in people for thread in person.threads}
    pages = [
        Page(asked["webs"][number % len(asked["webs"])], of[thread], thread, found)
        for number, thread in enumerate(asked["pages"])
    ]
    began = time.monotonic()
    await opened(pages)
    opening = time.monotonic() - began
    await asyncio.sleep(3)  # What a page is sent when it is opened is no part of the figures.
    until = time.monotonic() + asked["seconds"]
    cpu, wall = time.process_time(), time.monotonic()
    print("begun", file=sys.stderr, flush=True)
    talking = [
        chat(page, asked["every"], until, draw)
        for page in pages[: asked["chatting"]]
        if page.socket is not None
    ]
    await asyncio.gather(*talking, probe(asked["probed"], asked["rate"], until, found))
    await asyncio.sleep(2)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    errors = dict(found.errors)
    await asyncio.gather(*(page.close() for page in pages))
    return {
        "pages": len(pages),
        "opened_in_s": round(opening, 1),
        "errors": errors,
        "sent": found.sent,
        "taken_ms": spread(found.taken),
        "events": len(found.probes),
        "receipts": len(found.heard),
        "publish_to_receipt_ms": spread(found.heard),
        "frames": found.frames,
        "megabytes": round(found.bytes / 1e6, 1),
        "generator_cpu": round(cpu / wall, 2),
    }


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return usual, rare and worst times in milliseconds."""
    found = sorted(seconds) or [0.0]
    at = {"median": len(found) // 2, "p95": int(0.95 * len(found)), "max": -1}
    return {name: round(1e3 * found[place], 1) for name, place in at.items()}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
