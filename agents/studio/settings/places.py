"""Stand for where options are set: the memory of a conversation, or an agent.

Both show the same page. What differs is who sets them, what a change does at once, and how it is
stored and taken back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from django.urls import reverse

from agents.gauges import Panel, panel_of
from agents.models import AgentProfile
from agents.page import Scene
from agents.services import describe
from memory.config import MemoryOptions
from memory.models import MemoryRecord, Thread
from memory.services.configure import configure
from memory.services.go_back import go_back
from memory.services.outlook import Outlook, outlook

from . import crowd, history
from .draft import Draft, Layers
from .effects import Effect, effect
from .history import Happened

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet


class Place(Protocol):
    """Describe where options are set."""

    @property
    def url(self) -> str: ...
    @property
    def layers(self) -> Layers: ...
    @property
    def tools(self) -> Sequence[str]: ...
    @property
    def actor_model(self) -> str: ...
    def gauges(self, options: MemoryOptions) -> Panel | None: ...
    def effect(self, draft: Draft) -> Effect: ...
    def history(self) -> list[Happened]: ...
    def store(self, draft: Draft, *, author: User, reason: str) -> str: ...
    def back(self, key: str, *, author: User) -> None: ...


class Drafted(Scene):
    """Read a thread as it would be under other options."""

    def __init__(self, thread_id: Any, now: datetime, options: MemoryOptions) -> None:
        super().__init__(thread_id, now)
        self._options = options

    @property
    def options(self) -> MemoryOptions:
        """Return the options it would have."""
        return self._options

    @property
    def wrong(self) -> str:
        """Return nothing: the draft's faults stand beside its fields."""
        return ""


class OfThread:
    """Set the options of the memory a conversation's is in."""

    def __init__(self, thread: Thread, now: datetime) -> None:
        self.thread = thread
        self.now = now

    @property
    def url(self) -> str:
        """Return the address of its page."""
        return reverse("settings-thread", args=[self.thread.pk])

    @cached_property
    def scene(self) -> Scene:
        """Return the thread as its pages read it."""
        return Scene(self.thread.pk, self.now)

    @property
    def record(self) -> MemoryRecord | None:
        """Return the record, None before there is one."""
        return self.scene.record

    @cached_property
    def layers(self) -> Layers:
        """Return the record's options and the agent's below them."""
        own = self.record.config if self.record else {}
        return Layers(own, json.loads(self.scene.state.of_agent) or {})

    @property
    def tools(self) -> Sequence[str]:
        """Return the tools of the agent."""
        return list(self.scene.agent.tools) if self.scene.agent else []

    @property
    def actor_model(self) -> str:
        """Return the model that answers."""
        return self.scene.state.actor_model

    def gauges(self, options: MemoryOptions) -> Panel:
        """Return the gauges as they would be."""
        return panel_of(Drafted(self.thread.pk, self.now, options))

    @cached_property
    def now_due(self) -> Outlook | None:
        """Return what is due as things are."""
        return outlook(self.thread.pk)

    def effect(self, draft: Draft) -> Effect:
        """Return what the options would do at once."""
        return effect(self.now_due, outlook(self.thread.pk, draft.options))

    def history(self) -> list[Happened]:
        """Return the changes of the record's options."""
        return history.of_record(self.record, self.now)

    def store(self, draft: Draft, *, author: User, reason: str) -> str:
        """Store a draft; return the key by which it is taken back. Raises Refused."""
        before = self.record.revision if self.record else 0
        changes = {name: draft.own.get(name) for name in draft.changes}
        configure(self.thread.pk, changes, author=author, reason=reason)
        return str(before)

    def back(self, key: str, *, author: User) -> None:
        """Go back to the options of a revision. Raises Refused."""
        if self.record is not None:
            go_back(self.thread.pk, self.record, _number(key), author=author)


def _number(key: str) -> int:
    return int(key) if key.isascii() and key.isdigit() and len(key) < 19 else -1


class OfAgent:
    """Set the options that an agent's memories have unless they have their own."""

    def __init__(self, profile: AgentProfile, now: datetime, threads: QuerySet[Thread]) -> None:
        self.profile = profile
        self.now = now
        self.threads = threads

    @property
    def url(self) -> str:
        """Return the address of its page."""
        return reverse("settings-agent", args=[self.profile.slug])

    @cached_property
    def layers(self) -> Layers:
        """Return the agent's options."""
        return Layers(self.profile.memory_options, here="agent")

    @property
    def tools(self) -> Sequence[str]:
        """Return its tools."""
        return list(self.profile.tools)

    @property
    def actor_model(self) -> str:
        """Return the model that answers."""
        return self.profile.model_name

    @cached_property
    def newest(self) -> Thread | None:
        """Return its newest conversation that may be seen, whose gauges are shown."""
        mine = self.threads.filter(agent=self.profile.slug, remembers=True)
        return mine.order_by("-last_active_at").first()

    def gauges(self, options: MemoryOptions) -> Panel | None:
        """Return the gauges of its newest conversation as they would be; None without any."""
        if self.newest is None:
            return None
        return panel_of(Drafted(self.newest.pk, self.now, options))

    def effect(self, draft: Draft) -> Effect:
        """Return what the options would do to its conversations."""
        return crowd.effect(self.profile, draft.own, self.now)

    def history(self) -> list[Happened]:
        """Return the changes of its options."""
        return history.of_agent(describe.option_changes(self.profile)[: history.MOST], self.now)

    def store(self, draft: Draft, *, author: User, reason: str) -> str:
        """Store a draft; return the key by which it is taken back. Raises Refused."""
        changes = describe.option_changes(self.profile)
        describe.change(self.profile.slug, {describe.OPTIONS: draft.own}, author=author)
        return str(changes[0].pk) if changes else describe.FIRST

    def back(self, key: str, *, author: User) -> None:
        """Go back to the options of a change. Raises Refused."""
        describe.go_back(self.profile.slug, key, author=author)
