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
    """Tell that a cycle failed, was interrupted or given up."""

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
