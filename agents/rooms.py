"""Hold the open pages of each thread in this process, and send them what changed.

All of it runs on the server's event loop; only ``render`` and ``stamps`` go to a database
thread, one hop each. A room renders once for all of its pages. What is being said needs no rows
and waits for none of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from django.utils import timezone

from agents import known, live, patches
from agents.aside import for_pages
from agents.live import BESIDE, NAMES, REGIONS, Delta, Rendered
from agents.stamps import Stamp, stamps
from memory.models import Thread

logger = logging.getLogger(__name__)

COALESCE_SECONDS = 0.06
#: How many times as long as its last render took a room waits for what else is to be rendered:
#: a server that falls behind then renders less often, not later and later.
EASE = 2.0
MOST_EASE_SECONDS = 1.0
WATCH_SECONDS = 2.0
#: How long the watch rests at most where what it finds takes long to render.
MOST_WATCH_SECONDS = 6.0

#: How many rooms are rendered before the database thread is left to others for a moment.
AT_ONCE = 10


class Member(Protocol):
    """Describe an open page, as a room sees it."""

    async def offer(self, regions: Sequence[Rendered]) -> None: ...

    async def dismiss(self) -> None: ...


def _read(
    thread_id: UUID, names: set[str], heard: Delta | None
) -> tuple[Stamp | None, dict[str, Rendered]]:
    # The stamp first: what moves while the rows are read is then found stale, not missed.
    stamp = stamps([thread_id]).get(thread_id)
    return stamp, live.render(thread_id, names, now=timezone.now(), heard=heard, stamp=stamp)


Read = Callable[[UUID, set[str], Delta | None], tuple[Stamp | None, dict[str, Rendered]]]


class Room:
    """Keep the regions of one thread rendered, and its pages up to date."""

    def __init__(
        self,
        thread_id: UUID,
        *,
        table: Mapping[str, Iterable[str]] = REGIONS,
        pause: float = COALESCE_SECONDS,
        read: Read = _read,
    ) -> None:
        self.thread_id = thread_id
        self.members: set[Member] = set()
        self.shown: dict[str, Rendered] = {}
        self.rendered_at: dict[str, Stamp | None] = {}
        self._table = table
        self._pause = pause
        self._read = read
        self._dirty: set[str] = set()
        self._rendering: set[str] = set()
        self._heard: Delta | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._took = 0.0

    def event(self, event: Mapping[str, Any]) -> None:
        """Mark what an event can have changed."""
        if event["kind"] == "turn.delta":
            self._hear(Delta(event["turn"], event["after"], event["text"]))
        else:
            known.hear(event)
            self.mark(self._table.get(event["kind"], ()))

    def mark(self, names: Iterable[str]) -> None:
        """Render these regions anew in a moment, together with what else is marked by then."""
        self._dirty.update(names)
        if self._dirty and (self._flushing is None or self._flushing.done()):
            self._flushing = asyncio.create_task(self._flush())

    def differing(self, etags: Mapping[str, Any]) -> list[Rendered]:
        """Return the regions a page shows otherwise than this room.

        Without those that are to be rendered anew: all pages are sent them in a moment, and a
        page that was just loaded must not go back to what they were.
        """
        coming = self._dirty | self._rendering
        shown = (each for name, each in self.shown.items() if name not in coming)
        return [each for each in shown if etags.get(each.name) != each.etag]

    def stale(self, stamp: Stamp | None) -> set[str]:
        """Return what is shown otherwise than the rows are."""
        return set(NAMES) if stamp is None else live.stale(self.rendered_at, stamp)

    @property
    def is_busy(self) -> bool:
        """Tell whether regions are marked, or being rendered."""
        return self._flushing is not None and not self._flushing.done()

    async def show(self, regions: Sequence[Rendered], stamp: Stamp) -> None:
        """Show regions that were rendered together with those of other rooms."""
        if self.is_busy:
            # What was rendered meanwhile may be newer.
            self.mark(region.name for region in regions)
            return
        self.rendered_at.update((region.name, stamp) for region in regions)
        self.shown.update((region.name, region) for region in regions)
        await self._offer(regions)

    async def settle(self) -> None:
        """Wait until everything marked so far is rendered and offered."""
        while tasks := [t for t in (self._telling, self._flushing) if t and not t.done()]:
            await asyncio.gather(*tasks)

    def close(self) -> None:
        """Stop rendering."""
        for task in (self._telling, self._flushing):
            if task is not None:
                task.cancel()

    def _hear(self, delta: Delta) -> None:
        if self._heard is not None and self._heard.outdates(delta):
            return
        self._heard = delta
        asked = "draft" in self._table.get("turn.delta", ())
        if asked and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """Show what is being said as it was heard, ahead of whatever is to be rendered."""
        told = None
        while self._heard is not None and self._heard is not told:
            await asyncio.sleep(self._pause)
            told = self._heard
            if "draft" in self._dirty | self._rendering:
                # Its turn may be over: the rows tell, and what was heard if they know no more.
                self.mark(["draft"])
                return
            # Not checked against the rows: the watch does that within two seconds.
            self.rendered_at["draft"] = None
            self.shown["draft"] = draft = live.render_heard(told)
            await self._offer([draft])

    async def _flush(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._dirty:
            await asyncio.sleep(max(self._pause, min(EASE * self._took, MOST_EASE_SECONDS)))
            self._rendering = names = self._dirty
            self._dirty = set()
            began = clock()
            try:
                rendered = await self._render(names)
            except Thread.DoesNotExist:
                await asyncio.gather(*(member.dismiss() for member in self.members))
                return
            except Exception:
                # The watch finds these regions unstamped and comes back to them.
                logger.exception("The regions %s were not rendered.", sorted(names))
                self.rendered_at.update(dict.fromkeys(names))
                return
            finally:
                self._rendering = set()
            self._took = clock() - began
            self.shown.update(rendered)
            await self._offer(list(rendered.values()))

    async def _render(self, names: set[str]) -> dict[str, Rendered]:
        stamp: Stamp | None
        rendered: dict[str, Rendered]
        stamp, rendered = await for_pages(self._read)(self.thread_id, names, self._heard)
        self.rendered_at.update(dict.fromkeys(names, stamp))
        return {name: patches.since(self.shown.get(name), new) for name, new in rendered.items()}

    async def _offer(self, regions: Sequence[Rendered]) -> None:
        await asyncio.gather(*(member.offer(regions) for member in list(self.members)))


class Rooms:
    """Hold the rooms of one event loop and watch them while there are any."""

    def __init__(self) -> None:
        self._rooms: dict[UUID, Room] = {}
        self._watching: asyncio.Task[None] | None = None

    def enter(self, thread_id: UUID, member: Member) -> Room:
        """Return the thread's room with a page in it."""
        room = self._rooms.get(thread_id)
        if room is None:
            room = self._rooms[thread_id] = Room(thread_id)
        room.members.add(member)
        room.mark(name for name in NAMES if name not in room.shown)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return room

    def leave(self, room: Room, member: Member) -> None:
        """Take a page out of its room; the last one closes it."""
        room.members.discard(member)
        if not room.members and self._rooms.get(room.thread_id) is room:
            del self._rooms[room.thread_id]
            room.close()
        if not self._rooms and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        took = 0.0
        while True:
            await asyncio.sleep(max(WATCH_SECONDS, min(EASE * took, MOST_WATCH_SECONDS)))
            began = clock()
            try:
                await self.look()
            except Exception:
                # A database that is away for a moment must not end the watch.
                logger.exception("The open threads could not be compared.")
            took = clock() - began

    async def look(self) -> None:
        """Compare every open thread with its rows, in one statement, and show what moved."""
        found = await for_pages(stamps)(list(self._rooms))
        beside: dict[int, dict[UUID, set[str]]] = defaultdict(dict)
        for thread_id, room in list(self._rooms.items()):
            stamp = found.get(thread_id)
            names = room.stale(stamp)
            if stamp is None or room.is_busy or not names <= BESIDE:
                room.mark(names)
            elif names:
                beside[stamp["resource"]][thread_id] = names
        for resource_id, wanted in beside.items():
            ids = list(wanted)
            for start in range(0, len(ids), AT_ONCE):
                some = {each: wanted[each] for each in ids[start : start + AT_ONCE]}
                await self._show(resource_id, some, found)

    async def _show(
        self, resource_id: int, wanted: Mapping[UUID, set[str]], found: Mapping[UUID, Stamp]
    ) -> None:
        """Render together what one thread that talks changes on the pages of others."""
        rendered = await for_pages(live.beside)(resource_id, wanted, found, timezone.now())
        for thread_id, regions in rendered.items():
            if (room := self._rooms.get(thread_id)) is not None:
                await room.show(regions, found[thread_id])


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Rooms] = WeakKeyDictionary()


def rooms() -> Rooms:
    """Return the rooms of the running event loop."""
    return _OF_LOOP.setdefault(asyncio.get_running_loop(), Rooms())
