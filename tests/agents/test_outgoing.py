"""A page that does not read holds up nobody and is kept little for."""

import asyncio
import re
from dataclasses import replace

from agents.live import Patch, Rendered
from agents.outgoing import MOST_ANSWERS, Outgoing
from agents.rooms import Room

HTML = re.compile(r"\[(.*?)\]")


def region(name, version):
    return Rendered(name, f"{name}:{version}", (f"[{name} {version}]".encode(),))


class Wire:
    """Take frames while it is open; else let whoever sends one wait."""

    def __init__(self, *, reads=True):
        self.frames = []
        self.begun = 0
        self.reads = asyncio.Event()
        if reads:
            self.reads.set()

    async def __call__(self, kind, **fields):
        self.begun += 1
        await self.reads.wait()
        self.frames.append((kind, HTML.findall(fields.get("content", ""))))


class Page:
    """Stand in a room with what a consumer has for its socket."""

    def __init__(self, wire):
        self.outgoing = Outgoing(wire)

    async def offer(self, regions):
        self.outgoing.show(regions)

    async def dismiss(self):
        self.outgoing.stop()


async def quiet():
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_changes_while_a_page_reads_one_frame_comes_in_the_next():
    wire = Wire(reads=False)
    outgoing = Outgoing(wire)
    outgoing.show([region("draft", 1)])
    await quiet()
    for version in range(2, 1000):
        outgoing.show([region("draft", version), region("gauges", version)])
    assert outgoing.waiting == 2
    wire.reads.set()
    await outgoing.settle(1)
    assert wire.frames == [
        ("render", ["draft 1"]),
        ("render", ["draft 999", "gauges 999"]),
    ]


async def test_who_has_the_version_before_is_sent_what_changed_and_others_the_whole():
    first, third = (region("entries", version) for version in (1, 3))
    patch = Patch(first.etag, "[entries 1 to 2]", {"data-etag": "entries:2"})
    second, frames = replace(region("entries", 2), patch=patch), []

    async def send(kind, content, patched=None):
        frames.append((HTML.findall(content), patched))

    for shown, has in (([first, second], {}), ([second], {"entries": first.etag}), ([second], {})):
        outgoing = Outgoing(send)
        outgoing.has(has)
        for each in [*shown, third]:
            outgoing.show([each])
            await outgoing.settle(1)

    told = ["entries 1 to 2"], {"entries": {"base": "entries:1", "data-etag": "entries:2"}}
    whole = ["entries 2"], None
    assert frames == [
        (["entries 1"], None), told, (["entries 3"], None),
        told, (["entries 3"], None),
        whole, (["entries 3"], None),
    ]  # fmt: skip


async def test_a_page_that_does_not_read_holds_up_no_other():
    slow, quick = Wire(reads=False), Wire()
    room = Room(None, pause=0)
    versions = iter(range(10_000))

    async def render(names):
        version = next(versions)
        return {name: region(name, version) for name in names}

    room._render = render
    room.members = {Page(slow), Page(quick)}
    for _ in range(200):
        room.mark(["entries", "draft"])
        async with asyncio.timeout(1):
            await room.settle()
        await quiet()

    assert len(quick.frames) == 200
    assert slow.begun == 1
    waiting = [page.outgoing.waiting for page in room.members]
    assert sorted(waiting) == [0, 2]

    slow.reads.set()
    await quiet()
    assert len(slow.frames) == 2
    assert set(slow.frames[1][1]) == set(quick.frames[-1][1]) == {"entries 199", "draft 199"}


async def test_answers_come_before_regions_and_in_order():
    wire = Wire(reads=False)
    outgoing = Outgoing(wire)
    outgoing.show([region("draft", 1)])
    assert outgoing.say("pong")
    assert outgoing.say("accepted", key="k")
    wire.reads.set()
    await outgoing.settle(1)
    assert [kind for kind, _ in wire.frames] == ["pong", "accepted", "render"]


async def test_who_asks_without_reading_is_not_answered_without_end():
    outgoing = Outgoing(Wire(reads=False))
    taken = [outgoing.say("pong") for _ in range(MOST_ANSWERS + 5)]
    assert taken == [True] * MOST_ANSWERS + [False] * 5
    assert outgoing.waiting == MOST_ANSWERS


async def test_nothing_is_sent_to_a_page_that_left():
    wire = Wire(reads=False)
    outgoing = Outgoing(wire)
    outgoing.show([region("draft", 1)])
    await quiet()
    outgoing.stop()
    wire.reads.set()
    await quiet()
    assert (wire.frames, outgoing.waiting) == ([], 0)


async def test_waiting_for_a_page_ends():
    outgoing = Outgoing(Wire(reads=False))
    outgoing.say("error")
    async with asyncio.timeout(1):
        await outgoing.settle(0.01)


async def test_a_frame_that_fails_is_not_the_end_of_the_page(caplog):
    async def send(kind, **fields):
        raise ConnectionError("gone")

    outgoing = Outgoing(send)
    assert outgoing.say("pong")
    await outgoing.settle(1)
    assert "could not be sent" in caplog.text
    assert outgoing.say("pong")
    await outgoing.settle(1)
