"""Connect an open page of the Studio with what it watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from time import monotonic
from typing import Any
from urllib.parse import parse_qs

from django.utils import timezone

from agents.access import Role, resources_for, role_of, threads_for
from agents.aside import at_the_door
from agents.consumers import (
    BROKEN,
    NOT_FOUND,
    SIGNED_OUT,
    TOO_MANY,
    BadFrame,
    parsed,
    signed_in,
)
from agents.sockets import CountedConsumer
from agents.studio.hub import BadScope, Scope, hub, scopes
from memory.models import MemoryRecord
from memory.publish import record_group, thread_group

#: How long events are gathered before a page is told once of all of them.
COALESCE_SECONDS = 0.1

#: What a page does not ask again for: the words of a running answer, many times a second.
SMALL = frozenset({"turn.delta"})


class StudioConsumer(CountedConsumer):
    """Tell a page when to ask again.

    Closes with 4401 when nobody is signed in (any more), 4404 when the page watches what is
    not theirs to see, 4400 when it names nothing that can be watched, 4429 when its person has
    too many pages open.
    """

    telling: asyncio.Task[None] | None = None
    #: What moved and was not told yet: of many movements, the last.
    untold = ""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle a message; an event touches no database, so it is spared the thread hop."""
        if message["type"] == "memory.event":
            if message["event"]["kind"] not in SMALL:
                await self.moved(message["event"]["kind"])
            return
        await super().dispatch(message)

    async def connect(self) -> None:
        await self.accept()
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        try:
            self.watched = scopes(",".join(query.get("watch", [])))
        except BadScope:
            await self.close(BROKEN)
            return
        if code := await self._checked():
            await self.close(code)
            return
        if self.count(self.scope["user"].pk) is not None:
            # The page asks every few seconds instead.
            await self.close(TOO_MANY)
            return
        for group in filter(None, map(_group, self.watched)):
            await self.channel_layer.group_add(group, self.channel_name)
            self.groups.append(group)
        hub().enter(self, self.watched)
        # What moved between the page's rendering and now was heard by nobody: it asks once.
        await self._send("watching")

    def leave(self) -> None:
        """Watch for the page no longer, and tell it nothing more."""
        hub().leave(self)
        if self.telling is not None:
            self.telling.cancel()

    async def _checked(self) -> int:
        self.checked_at = monotonic()
        code: int = await at_the_door(self._admission)()
        return code

    def _admission(self) -> int:
        user = self.scope["user"] = signed_in(self.scope)
        if not user.is_authenticated:
            return SIGNED_OUT
        return 0 if may_watch(user, self.watched) else NOT_FOUND

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Take the page's sign of life: from time to time its right to watch is looked at again."""
        try:
            frame = parsed(text_data)
        except BadFrame:
            return
        if await self._still_welcome() and frame.get("type") == "ping":
            await self._send("pong")

    async def _still_welcome(self) -> bool:
        """Close the socket of somebody who signed out or may no longer watch."""
        if self.in_doubt and (code := await self._checked()):
            await self.close(code)
            self.leave()
            return False
        return True

    async def moved(self, kind: str) -> None:
        """Tell the page in a moment, once for all that moves until it can take it."""
        self.untold = kind
        if self.telling is None or self.telling.done():
            self.telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self.untold:
            await asyncio.sleep(COALESCE_SECONDS)
            if not await self._still_welcome():
                return
            kind, self.untold = self.untold, ""
            await self._send("moved", what=kind)

    async def _send(self, kind: str, **fields: str) -> None:
        frame = {"type": kind, "now": timezone.now().isoformat(), **fields}
        await self.send(text_data=json.dumps(frame))


def _group(scope: Scope) -> str | None:
    match scope:
        case ("thread", key):
            return thread_group(key)
        case ("record", key):
            return record_group(key)
    return None


def may_watch(user: Any, watched: Iterable[Scope]) -> bool:
    """Tell whether somebody may see all that a page watches."""
    keys: dict[str, set[Any]] = {"thread": set(), "record": set(), "resource": set()}
    for scope in watched:
        if scope.kind == "everything":
            if role_of(user) < Role.OPERATOR:
                return False
        else:
            keys[scope.kind].add(scope.key)
    resources = resources_for(user, lab=True)
    records = MemoryRecord.objects.filter(resource__in=resources)
    seen = {"thread": threads_for(user, lab=True), "record": records, "resource": resources}
    return all(
        seen[kind].filter(pk__in=wanted).count() == len(wanted)
        for kind, wanted in keys.items()
        if wanted
    )
