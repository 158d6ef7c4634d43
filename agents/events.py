"""Name what happens to turns."""

from __future__ import annotations

from typing import Literal

from memory import events
from memory.events import Event


class TurnQueued(Event):
    """Tell that a prompt waits for its turn."""

    kind: Literal["turn.queued"] = "turn.queued"
    turn: int


class TurnWithdrawn(Event):
    """Tell that a waiting prompt was taken back."""

    kind: Literal["turn.withdrawn"] = "turn.withdrawn"
    turn: int


class TurnStarted(Event):
    """Tell that the Actor began to answer."""

    kind: Literal["turn.started"] = "turn.started"
    turn: int


class TurnDelta(Event):
    """Carry all text the Actor has said in the step under way.

    ``after`` is the position of the last message stored before it.
    """

    kind: Literal["turn.delta"] = "turn.delta"
    turn: int
    after: int
    text: str


class TurnClosed(Event):
    """Tell that a turn ended, and how."""

    kind: Literal["turn.closed"] = "turn.closed"
    turn: int
    status: str


_CHANGES: tuple[type[Event], ...] = tuple(events.CHANGED.values())

_KINDS: tuple[type[Event], ...] = (
    events.MessagesAppended,
    events.CycleStarted,
    events.CycleFinished,
    events.CycleFailed,
    events.MemoryActivated,
    events.MemoryReflected,
    events.ThreadRenamed,
    events.ThreadForked,
    *_CHANGES,
    TurnQueued,
    TurnWithdrawn,
    TurnStarted,
    TurnDelta,
    TurnClosed,
)

KINDS = {kind.model_fields["kind"].default: kind for kind in _KINDS}
