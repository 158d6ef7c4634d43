"""Name what happened, as typed facts with ids and small numbers only."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """Hold one fact about a thread, and the record it concerns if any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    thread: UUID
    record: UUID | None = None


class MessagesAppended(Event):
    """Tell that messages were stored at positions ``first..last``."""

    kind: Literal["messages.appended"] = "messages.appended"
    first: int
    last: int


class CycleStarted(Event):
    """Tell that an Observer or Reflector began to work."""

    kind: Literal["cycle.started"] = "cycle.started"
    cycle: UUID


class CycleFinished(Event):
    """Tell that a cycle brought its result."""

    kind: Literal["cycle.finished"] = "cycle.finished"
    cycle: UUID


class CycleFailed(Event):
    """Tell that a cycle failed, was interrupted, cancelled or given up."""

    kind: Literal["cycle.failed"] = "cycle.failed"
    cycle: UUID


class MemoryActivated(Event):
    """Tell that observations became visible and their messages left the context."""

    kind: Literal["memory.activated"] = "memory.activated"
    revision: int


class MemoryReflected(Event):
    """Tell that a reflection took the place of observations."""

    kind: Literal["memory.reflected"] = "memory.reflected"
    revision: int


class ThreadRenamed(Event):
    """Tell that a thread has a new title."""

    kind: Literal["thread.renamed"] = "thread.renamed"
    title: str


class MemoryChanged(Event):
    """Tell that people made a revision; each kind of change has an event of its own."""

    kind: str = "memory.changed"
    revision: int


class MemoryEdited(MemoryChanged):
    """Tell that a person changed what a line says."""

    kind: Literal["memory.edited"] = "memory.edited"


class MemoryNoted(MemoryChanged):
    """Tell that a person wrote a note."""

    kind: Literal["memory.noted"] = "memory.noted"


class MemoryPinned(MemoryChanged):
    """Tell that lines were pinned or unpinned."""

    kind: Literal["memory.pinned"] = "memory.pinned"


class MemoryForgotten(MemoryChanged):
    """Tell that lines were taken out of sight."""

    kind: Literal["memory.forgotten"] = "memory.forgotten"


class MemoryRestored(MemoryChanged):
    """Tell that lines are visible again."""

    kind: Literal["memory.restored"] = "memory.restored"


class MemoryCleared(MemoryChanged):
    """Tell that all lines went out of sight."""

    kind: Literal["memory.cleared"] = "memory.cleared"


class MemoryErased(MemoryChanged):
    """Tell that text was destroyed; whoever shows or keeps a copy of it drops it."""

    kind: Literal["memory.erased"] = "memory.erased"


class MemoryConfigured(MemoryChanged):
    """Tell that options of a record were changed; the lines stay as they are."""

    kind: Literal["memory.configured"] = "memory.configured"


class ScopeChanged(MemoryChanged):
    """Tell that another record holds the memory of the thread from now on."""

    kind: Literal["scope.changed"] = "scope.changed"


class ThreadForked(Event):
    """Tell that a new thread began as a copy of this one up to a position."""

    kind: Literal["thread.forked"] = "thread.forked"
    fork: UUID
    position: int


CHANGED: dict[str, type[MemoryChanged]] = {
    "edit": MemoryEdited,
    "note": MemoryNoted,
    "pin": MemoryPinned,
    "forget": MemoryForgotten,
    "restore": MemoryRestored,
    "clear": MemoryCleared,
    "erase": MemoryErased,
    "config": MemoryConfigured,
    "scope": ScopeChanged,
}
"""Which event follows a change, by the cause of its revision."""
