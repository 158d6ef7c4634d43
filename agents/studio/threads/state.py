"""Say what a conversation is at: what runs in it, what went wrong last, or that it rests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from agents import words
from agents.markers import doing
from agents.models import Turn
from memory.models import Cycle

WORK, WRONG, REST = "At work", "Needs attention", "At rest"


@dataclass(frozen=True)
class State:
    """Show what a conversation is at; ``since`` ticks while something runs."""

    key: str = "idle"
    words: str = "at rest"
    since: str = ""
    clock: str = ""

    @property
    def column(self) -> str:
        """Return where a board shows it."""
        return {"idle": REST, "failed": WRONG, "interrupted": WRONG}.get(self.key, WORK)


_ENDS = {
    Turn.Status.FAILED: ("failed", "✕ answer failed"),
    Turn.Status.INTERRUPTED: ("interrupted", "⚠ answer interrupted"),
}
_COLOURS = {
    Cycle.Kind.BUFFER: "buffering",
    Cycle.Kind.OBSERVE: "observing",
    Cycle.Kind.BUFFER_REFLECTION: "reflecting",
    Cycle.Kind.REFLECT: "reflecting",
}


def state_of(turn: Turn | None, cycle: Cycle | None, zone: ZoneInfo) -> State:
    """Return what a conversation is at, from its last turn and its last cycle."""
    return next(_states(turn, cycle, zone), State())


def _states(turn: Turn | None, cycle: Cycle | None, zone: ZoneInfo) -> Iterator[State]:
    """Yield what a conversation is at, what matters most first."""
    if cycle is not None and cycle.status == Cycle.Status.RUNNING:
        kind = Cycle.Kind(cycle.kind)
        since = cycle.started_at.isoformat(timespec="seconds")
        yield State(_COLOURS[kind], doing(kind).lower(), since)
    if turn is not None and turn.status == Turn.Status.RUNNING:
        since = (turn.started_at or turn.created_at).isoformat(timespec="seconds")
        yield State("observing", "answering", since)
    if turn is not None and turn.status == Turn.Status.WAITING:
        yield State("observing", "waiting")
    if turn is not None and turn.status in _ENDS:
        key, text = _ENDS[Turn.Status(turn.status)]
        yield State(key, text, clock=_clock(turn.finished_at, zone))
    if cycle is not None and cycle.status == Cycle.Status.FAILED:
        noun = "reflection" if "reflect" in cycle.kind else "observation"
        yield State("failed", f"✕ {noun} failed", clock=_clock(cycle.finished_at, zone))


def _clock(at: datetime | None, zone: ZoneInfo) -> str:
    return words.clock(at.astimezone(zone)) if at else ""
