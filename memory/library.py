"""Give anybody's pydantic-ai agent memory.

Nothing here needs Django before the first run, so that a program may make its agents first
and call ``setup`` later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID, uuid5
from zoneinfo import available_timezones

from asgiref.sync import sync_to_async
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability

Key = str | UUID
Named = Key | Callable[[RunContext[Any]], Key]

_KEYS = UUID("5d0a7c3e-94f1-5c1e-8f0b-2f6f0f5b8a11")
_SLUG = re.compile(r"[-\w]{1,100}", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Say which thread a run is in, and how it is made when it is not there yet.

    ``resource`` is the key of whose memory it is, empty for the thread's own.
    """

    thread_id: UUID
    title: str
    resource: str
    name: str
    scope: str
    time_zone: str


@dataclass(init=False)
class ObservationalMemory(AbstractCapability[Any]):
    """Have an agent remember a conversation, however long it gets.

    ``thread`` names the conversation: a text of yours, a thread's UUID, or a function that
    gives either for a run. It is made at its first run. Its memory is its own, or with
    ``scope="resource"`` that of everything under the same ``resource``: a user's, say, or a
    team's. ``options`` are memory options; those named are written to the memory's record.

    Each run stores its prompt and every finished message, and is sent memory in place of its
    history. What is due is observed in the background of the same event loop. Runs of a thread
    go one after another. Raises ValueError for what cannot be meant.
    """

    def __init__(
        self,
        thread: Named,
        *,
        resource: str = "",
        name: str = "",
        scope: Literal["", "thread", "resource"] = "",
        time_zone: str = "UTC",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = None
        self.description = None
        self.defer_loading = False
        self.thread = thread
        self.resource = resource
        self.name = name
        self.scope = scope
        self.time_zone = time_zone
        self.options = dict(options or {})
        self._check()

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return what remembers this run; the thread is found, or made."""
        from memory.runs import open_run

        given = self.thread(ctx) if callable(self.thread) else self.thread
        place = self._place(given, getattr(ctx.agent, "name", None) or "")
        return await sync_to_async(open_run)(place, self.options, ctx.model)

    async def lines(self, thread: Key = "") -> list[str]:
        """Return what is remembered, oldest first; ``thread`` where it is not always the same."""
        from memory.runs import lines_of

        given = self.thread if thread == "" else thread
        if callable(given):
            raise ValueError("thread: name the one to read, since it differs from run to run")
        return await sync_to_async(lines_of)(self._place(given, "").thread_id)

    def _check(self) -> None:
        if self.scope not in ("", "thread", "resource"):
            raise ValueError(f'scope = {self.scope!r}: must be "thread" or "resource"')
        if self.scope == "resource" and not self.resource:
            raise ValueError('scope = "resource": name the resource whose memory it is')
        if "scope" in self.options:
            raise ValueError("options: give the scope as an argument of its own")
        if self.time_zone not in available_timezones():
            raise ValueError(f'time_zone = {self.time_zone!r}: must be one like "Europe/Berlin"')
        if self.thread == "":
            raise ValueError("thread: must not be empty; name the conversation")

    def _place(self, key: Key, agent: str) -> Place:
        if not isinstance(key, str | UUID) or key == "":
            raise ValueError(f"thread = {key!r}: must be a text that is not empty, or a UUID")
        named = isinstance(key, str)
        thread_id = uuid5(_KEYS, f"{self.resource}\n{key}") if named else UUID(str(key))
        return Place(
            thread_id=thread_id,
            title=str(key) if named else "",
            resource=resource_key(self.resource) if self.resource else "",
            name=self.name or self.resource or agent,
            scope=self.scope,
            time_zone=self.time_zone,
        )


def resource_key(text: str) -> str:
    """Return the key of a resource somebody named with any text: that text, where it can be one."""
    if _SLUG.fullmatch(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:60]
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digest}".lstrip("-")


async def settled() -> None:
    """Wait until nothing that runs of this event loop made due is under way any more.

    To be awaited before the loop ends; what it would cut off is only done later.
    """
    from memory.background import settled as background_settled

    await background_settled()
