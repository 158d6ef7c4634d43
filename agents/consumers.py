"""Connect one open chat page with its thread."""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Sequence
from importlib import import_module
from time import monotonic
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db.models import Q
from django.utils import timezone

from agents import intents
from agents.admissions import Seat, admissions
from agents.allowed import allowed
from agents.aside import at_the_door
from agents.limits import Reached, too_large_frame
from agents.live import Rendered
from agents.outgoing import Outgoing
from agents.rooms import Room, rooms
from agents.services.refusal import facts_of
from agents.sockets import CountedConsumer
from memory.models import MemoryRecord
from memory.publish import record_group, thread_group

logger = logging.getLogger(__name__)

SIGNED_OUT, NOT_FOUND, BROKEN, SLOW, TOO_MANY = 4401, 4404, 4400, 4408, 4429
MOST_BROKEN = 10
LAST_WORDS_SECONDS = 1.0
NEVER = float("-inf")


class BadFrame(ValueError):
    """Say what is wrong with a frame."""


class ChatConsumer(CountedConsumer):
    """Send a page the regions that changed; take its messages, stops and withdrawals.

    Closes with 4401 when nobody is signed in (any more), 4404 when the thread is not theirs,
    4400 after ten broken frames, 4408 when it asks on and on and reads no answer, 4429 when
    its person has too many pages open.
    """

    room: Room | None = None
    rights: frozenset[str] = frozenset()
    #: What decided that the person may see the page, as the last look of all pages found it.
    standing: Hashable = None
    outgoing: Outgoing | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle a message; an event touches no database, so it is spared the thread hop."""
        if message["type"] == "memory.event":
            if self.room is not None:
                self.room.event(message["event"])
            if message["event"]["kind"] == "scope.changed":
                self.checked_at, self.standing = NEVER, None
            return
        await super().dispatch(message)

    async def connect(self) -> None:
        self.thread_id: UUID = self.scope["url_route"]["kwargs"]["thread_id"]
        self.sent: dict[str, str] = {}
        self.broken = 0
        self.outgoing = Outgoing(self._transmit)
        await self.accept()
        code, wide = await at_the_door(self._admission)()
        if code:
            await self.close(code)
            return
        if (reached := self.count(self.scope["user"].pk)) is not None:
            await self._limited(reached)
            await self._end(TOO_MANY)
            return
        self.checked_at = monotonic()
        await self._listen(wide)
        self.room = rooms().enter(self.thread_id, self)
        admissions().enter(self)

    @property
    def seat(self) -> Seat:
        """Return who looks at which conversation."""
        session = self.scope["session"].session_key
        return Seat(session, self.scope["user"].pk, self.thread_id)

    async def _listen(self, wide: Sequence[UUID]) -> None:
        """Hear of the thread, and of the memory it shares with others, as far as it does now.

        What others say raw is no event here: the watch finds it within two seconds, and a
        page need not be in a group for each of a hundred conversations.
        """
        wanted = [thread_group(self.thread_id), *(record_group(each) for each in wide)]
        for group in set(wanted) - set(self.groups):
            await self.channel_layer.group_add(group, self.channel_name)
        for group in set(self.groups) - set(wanted):
            await self.channel_layer.group_discard(group, self.channel_name)
        self.groups = wanted

    def leave(self) -> None:
        """Take the page out of its room, and send it nothing more."""
        admissions().leave(self)
        if self.room is not None:
            rooms().leave(self.room, self)
            self.room = None
        if self.outgoing is not None:
            self.outgoing.stop()

    def _admission(self) -> tuple[int, list[UUID]]:
        """Return the code to close with, 0 for none, and the wide records to listen to."""
        user = self.scope["user"] = signed_in(self.scope)
        if not user.is_authenticated:
            return SIGNED_OUT, []
        rights = intents.rights_on(user, self.thread_id)
        if rights is None:
            return NOT_FOUND, []
        self.rights = rights
        found = MemoryRecord.objects.filter(
            Q(thread=self.thread_id)
            | Q(scope=MemoryRecord.Scope.RESOURCE, resource__threads=self.thread_id),
            closed_at__isnull=True,
        )
        records = dict(found.values_list("scope", "pk"))
        if MemoryRecord.Scope.THREAD in records:
            return 0, []  # Its own comes first, and its events go to the thread's group too.
        return 0, list(records.values())

    async def offer(self, regions: Sequence[Rendered]) -> None:
        """Send the regions that this page was not sent yet, as soon as it can take them."""
        new = [each for each in regions if self.sent.get(each.name) != each.etag]
        if not new or self.outgoing is None:
            return
        self.sent.update((each.name, each.etag) for each in new)
        self.outgoing.show(new)

    async def dismiss(self) -> None:
        """Close the page's socket: its thread is gone."""
        await self.close(NOT_FOUND)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.room is None:
            return
        try:
            frame = parsed(text_data)
            size = 0 if text_data is None else len(text_data.encode(errors="replace"))
            if (reached := too_large_frame(settings.FRAME_BYTES, size)) is not None:
                await self._limited(reached, key=frame.get("key"))
            else:
                await self._handle(frame)
        except BadFrame as error:
            self.broken += 1
            await self._send("error", code="broken", message=str(error))
            if self.broken >= MOST_BROKEN:
                await self._end(BROKEN)

    async def _handle(self, frame: dict[str, Any]) -> None:
        match frame.get("type"):
            case "have":
                await self._have(frame.get("etags"))
            case "ping":
                await self._send("pong")
            case "send" | "stop" | "withdraw" | "retry":
                await self._act(frame)
            case other:
                raise BadFrame(f"Frames of type {str(other)[:40]!r} are not known.")

    async def _have(self, etags: object) -> None:
        if not isinstance(etags, dict) or self.room is None:
            raise BadFrame("A frame of type 'have' needs 'etags', an object.")
        if self.in_doubt and not await self.still_welcome():
            return
        self.sent = {name: etag for name, etag in etags.items() if isinstance(etag, str)}
        if self.outgoing is not None:
            self.outgoing.has(self.sent)
        await self.offer(self.room.differing(self.sent))

    async def still_welcome(self) -> bool:
        """Check in full; close the socket of somebody who signed out or is no longer a member."""
        self.checked_at = monotonic()
        return await self._welcomed(*await at_the_door(self._admission)())

    async def _welcomed(self, code: int, wide: Sequence[UUID]) -> bool:
        if code:
            await self.close(code)
            self.leave()
        else:
            await self._listen(wide)
        return not code

    async def _act(self, frame: dict[str, Any]) -> None:
        key = frame.get("key")
        self.checked_at = monotonic()
        try:
            found = await database_sync_to_async(self._carry_out)(frame)
            if not await self._welcomed(*found):
                return
        except intents.LimitReached as refusal:
            await self._send(
                "error", code="limited", message=str(refusal), key=key, **refusal.facts
            )
        except intents.Refused as refusal:
            await self._send("error", code="refused", message=str(refusal), key=key)
        else:
            if frame["type"] == "send":
                await self._send("accepted", key=key)

    def _carry_out(self, frame: dict[str, Any]) -> tuple[int, list[UUID]]:
        """Do what a page asks for, if its person still may; return what ``_admission`` does."""
        found = code, _ = self._admission()
        if code:
            return found
        user = self.scope["user"]
        # Asked anew and not of the page, whose rights another thread may just be looking at.
        if "chat" not in (intents.rights_on(user, self.thread_id) or ()):
            raise intents.Refused("Your account may read this conversation, not write in it.")
        match frame:
            case {"type": "send", "text": str(text), "key": str(key)}:
                files = _tokens(frame.get("files", []))
                intents.say(self.thread_id, text, key=_uuid(key), author=user, files=files)
            case {"type": "stop"}:
                intents.stop(self.thread_id)
            case {"type": "withdraw", "turn": int(number)}:
                intents.withdraw(self.thread_id, _number(number))
            case {"type": "retry", "turn": int(number)}:
                intents.retry(self.thread_id, _number(number), author=user)
            case _:
                raise BadFrame(f"A frame of type {frame['type']!r} lacks what it needs.")
        return found

    async def _limited(self, reached: Reached, *, key: object = None) -> None:
        """Tell the page which limit was met, and by which of its messages."""
        facts = facts_of(reached)
        await self._send("error", code="limited", message=reached.sentence, key=key, **facts)

    async def _send(self, kind: str, **fields: Any) -> None:
        """Answer the page in its turn; one that reads nothing is let go."""
        if self.outgoing is not None and not self.outgoing.say(kind, **fields):
            await self.close(SLOW)

    async def _end(self, code: int) -> None:
        """Close the socket once the page was told why."""
        if self.outgoing is not None:
            await self.outgoing.settle(LAST_WORDS_SECONDS)
        await self.close(code)

    async def _transmit(self, kind: str, **fields: Any) -> None:
        if kind == "render":
            # Here and not in the room, whose other pages would wait for the answer.
            if self.in_doubt and not await self.still_welcome():
                return
            fields["content"] = allowed(fields["content"], self.rights)
        frame = {"type": kind, "now": timezone.now().isoformat(), **fields}
        await self.send(text_data=json.dumps(frame))


def signed_in(scope: dict[str, Any]) -> Any:
    """Return whose session this is now: the one the socket was opened with may have ended."""
    key = scope["session"].session_key
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]


def parsed(text: str | None) -> dict[str, Any]:
    """Return a frame. Raises BadFrame."""
    try:
        frame = json.loads(text or "")
    except (ValueError, RecursionError):
        raise BadFrame("A frame must be JSON.") from None
    if not isinstance(frame, dict):
        raise BadFrame("A frame must be an object.")
    return frame


def _uuid(key: str) -> UUID:
    try:
        return UUID(key)
    except ValueError:
        raise BadFrame("'key' must be a UUID.") from None


def _tokens(files: object) -> list[str]:
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise BadFrame("'files' must be a list of what their upload returned.")
    return files


def _number(number: int) -> int:
    if not 0 < number < 2**31:
        raise BadFrame("'turn' must be the number of a turn.")
    return number
