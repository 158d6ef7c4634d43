"""Look now and then whether people may still see the pages they have open, all together.

Theory of operation
-------------------
Whoever opens a page is let in by a full check. What decided it (their session, who they are,
their groups and memberships, that the conversation is there, whose memory it shares) is read for
all pages of a process in a few statements. While it stays as it was, so does the answer; where
anything moved, that page's person is checked in full again. What decides is read before the check,
so that what moves meanwhile is found the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from time import monotonic
from typing import Any, Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from agents.aside import at_the_door
from memory.models import MemoryRecord, Resource, Thread

logger = logging.getLogger(__name__)

CHECK_SECONDS = 6.0


@dataclass(frozen=True)
class Seat:
    """Hold who looks at which conversation, by which session."""

    session: str
    user: int
    thread: UUID


class Guest(Protocol):
    """Describe an open page."""

    checked_at: float
    standing: Hashable

    @property
    def seat(self) -> Seat: ...

    async def still_welcome(self) -> bool: ...


def standings(seats: Collection[Seat]) -> Mapping[Seat, Hashable]:
    """Return what decides whether each may be taken; nothing where sessions are no rows."""
    if not issubclass(import_module(settings.SESSION_ENGINE).SessionStore, SessionStore):
        return {}
    model = get_user_model()
    keys, users = {seat.session for seat in seats}, {seat.user for seat in seats}
    alive = SessionStore.get_model_class().objects.filter(
        session_key__in=keys, expire_date__gt=timezone.now()
    )
    sessions = dict(alive.values_list("session_key", "session_data"))
    people = {
        pk: who
        for pk, *who in model.objects.filter(pk__in=users).values_list(
            "pk", "is_active", "is_superuser", "password"
        )
    }
    groups = _by(model.groups.through.objects, "user_id", "group_id", users)
    member = _by(Resource.members.through.objects, "user_id", "resource_id", users)
    there = Thread.objects.there().filter(pk__in={seat.thread for seat in seats})
    threads = {pk: place for pk, *place in there.values_list("pk", "resource", "is_lab")}
    shared, own = _records(threads)
    return {
        seat: (
            sessions.get(seat.session),
            *people.get(seat.user, ()),
            groups[seat.user],
            member[seat.user],
            *threads.get(seat.thread, ()),
            own.get(seat.thread),
            shared.get(threads[seat.thread][0]) if seat.thread in threads else None,
        )
        for seat in seats
    }


def _by(rows: Any, of: str, what: str, users: Iterable[int]) -> Mapping[int, frozenset[Any]]:
    found: dict[int, set[Any]] = defaultdict(set)
    for user, value in rows.filter(**{f"{of}__in": users}).values_list(of, what):
        found[user].add(value)
    return defaultdict(frozenset, {user: frozenset(values) for user, values in found.items()})


def _records(threads: Mapping[UUID, list[Any]]) -> tuple[dict[int, UUID], dict[UUID, UUID]]:
    """Return the open records of threads: shared ones by resource, their own by thread."""
    rows = MemoryRecord.objects.filter(closed_at__isnull=True)
    common = rows.filter(resource__in={place[0] for place in threads.values()}, thread=None)
    own = rows.filter(thread__in=threads)
    return dict(common.values_list("resource", "pk")), dict(own.values_list("thread", "pk"))


class Admissions:
    """Hold the open pages of one event loop, and look after them while there are any."""

    def __init__(self) -> None:
        self._guests: set[Guest] = set()
        self._watching: asyncio.Task[None] | None = None

    def enter(self, guest: Guest) -> None:
        """Look after a page from now on."""
        self._guests.add(guest)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def leave(self, guest: Guest) -> None:
        """Look after a page no more."""
        self._guests.discard(guest)
        if not self._guests and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.look()
            except Exception:
                # A database that is away for a moment must not end the watch: each page is
                # checked by itself before it is sent anything, once it was not for a while.
                logger.exception("Nobody looked whether open pages may still be seen.")

    async def look(self) -> None:
        """Check in full whose standing is not what it was; take all others to be who they were."""
        began, guests = monotonic(), list(self._guests)
        found = await at_the_door(standings)({guest.seat for guest in guests})
        for guest in guests:
            standing = found.get(guest.seat)
            if standing is not None and standing == guest.standing:
                guest.checked_at = max(guest.checked_at, began)
            elif standing is not None and guest in self._guests and await guest.still_welcome():
                guest.standing = standing


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Admissions] = WeakKeyDictionary()


def admissions() -> Admissions:
    """Return those of the running event loop."""
    return _OF_LOOP.setdefault(asyncio.get_running_loop(), Admissions())
