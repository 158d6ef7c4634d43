"""Make the rows of the timeline's table, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agents import words
from agents.markers import state_and_words, triggered
from agents.models import Turn
from agents.people import DID
from agents.studio.timeline.events import CAUSES, CYCLES, KINDS, Key, plain
from memory.models import Cycle, Observation, Revision, Thread

Cause = Revision.Cause

_DID = {
    **DID,
    Cause.ACTIVATE: "✓ Activated",
    Cause.REFLECT: "✓ Condensed",
    Cause.FORK: "→ Forked",
}
_STATES = {Cause.ACTIVATE: "activated", Cause.REFLECT: "reflected"}
_TURNS = {
    Turn.Status.WAITING: ("", "Waiting"),
    Turn.Status.RUNNING: ("buffering", "Answering"),
    Turn.Status.DONE: ("turn", "Answered"),
    Turn.Status.FAILED: ("failed", "✕ Not answered"),
    Turn.Status.STOPPED: ("interrupted", "Stopped"),
    Turn.Status.INTERRUPTED: ("interrupted", "⚠ Interrupted"),
}


@dataclass(frozen=True)
class Row:
    """Show one event. ``at`` is what it is asked for by; ``revision`` what it made, if anything."""

    id: str
    kind: str
    kind_words: str
    at: str
    time: str
    iso: str
    day: str
    state: str
    words: str
    tokens: str
    took: str
    detail: str
    since: str = ""
    thread: Thread | None = None
    revision: int | None = None
    links: tuple[tuple[str, str], ...] = ()


class Writer:
    """Write rows of one timeline: times in its zone, links to its pages."""

    def __init__(self, thread: Thread, zone: ZoneInfo) -> None:
        self.thread = thread
        self.zone = zone

    def row(self, key: Key, row: Any) -> Row:
        """Return a row of the table."""
        if isinstance(row, Turn):
            return self._turn(key, row)
        return self._cycle(key, row) if isinstance(row, Cycle) else self._revision(key, row)

    def _row(self, key: Key, kind: str, **shown: Any) -> Row:
        local = key.at.astimezone(self.zone)
        shown.setdefault("at", str(shown.get("revision") or key.key))
        return Row(
            id=f"event-{plain(key.key)}",
            kind=kind,
            kind_words=KINDS[kind],
            time=f"{local:%H:%M:%S}.{local.microsecond // 1000:03}",
            iso=local.isoformat(timespec="milliseconds"),
            day=words.day(local),
            **shown,
        )

    def _elsewhere(self, thread: Thread | None) -> Thread | None:
        return None if thread is None or thread.pk == self.thread.pk else thread

    def _turn(self, key: Key, turn: Turn) -> Row:
        state, text = _TURNS[Turn.Status(turn.status)]
        said = words.first_words(turn.prompt, 80)
        by = f"{turn.author}: " if turn.author else ""
        chat = f"/chat/{turn.thread_id}/"
        if turn.first_position:
            chat += f"#message-{turn.first_position}"
        return self._row(
            key,
            "turn",
            at=str(turn.pk),
            state=state,
            words=f"{text} · turn {turn.number}",
            tokens=_usage(turn.usage),
            took=_took(turn.started_at, turn.finished_at),
            since=_since(turn.started_at, turn.finished_at),
            detail=f"{by}“{said}”" + (f" · {turn.error}" if turn.error else ""),
            thread=self._elsewhere(turn.thread),
            links=(
                ("chat", chat),
                ("request", f"/context/{turn.thread_id}/requests/{turn.number}/"),
            ),
        )

    def _cycle(self, key: Key, cycle: Cycle) -> Row:
        written = next(iter(cycle.observations.all()), None)
        made = next(iter(cycle.revisions.all()), None)
        state, text = state_and_words(cycle, written)
        return self._row(
            key,
            CYCLES[Cycle.Kind(cycle.kind)],
            at=str(cycle.pk),
            state=state,
            words=text,
            tokens=_arrow(cycle.message_tokens, written.tokens if written else None),
            took=_took(cycle.started_at, cycle.finished_at),
            since=_since(cycle.started_at, cycle.finished_at),
            detail=_about(cycle, written),
            thread=self._elsewhere(cycle.thread),
            revision=made.number if made else None,
            links=(("call", f"/context/calls/{cycle.pk}/"),),
        )

    def _revision(self, key: Key, revision: Revision) -> Row:
        cause = Cause(revision.cause)
        by = f" by {revision.author}" if revision.author else ""
        of_messages = revision.message_tokens_before, revision.message_tokens_after
        of_lines = revision.tokens_before, revision.tokens_after
        why = triggered(revision.trigger) if revision.trigger else ""
        parts = [f"revision {revision.number}", why, revision.reason]
        if cause == Cause.ACTIVATE:
            parts.insert(1, f"observations {_arrow(*of_lines)}")
        return self._row(
            key,
            CAUSES.get(cause, "edit"),
            state=_STATES.get(cause, "changed"),
            words=f"{_DID.get(cause, cause.value)}{by}",
            tokens=_arrow(*(of_messages if cause == Cause.ACTIVATE else of_lines)),
            took="",
            detail=" · ".join(filter(None, parts)),
            thread=self._elsewhere(revision.thread),
            revision=revision.number,
            links=(("memory", f"/memory/{self.thread.pk}/?rev={revision.number}"),),
        )


def _about(cycle: Cycle, written: Observation | None) -> str:
    parts = [
        cycle.model,
        triggered(cycle.trigger) if cycle.trigger else "",
        f"messages {cycle.first_position}–{cycle.last_position}" if cycle.first_position else "",
        f"attempt {cycle.attempt}" if cycle.attempt > 1 else "",
        f"${cycle.cost:.4f}" if cycle.cost is not None else "",
        cycle.error,
        cycle.note,
    ]
    return " · ".join(filter(None, parts))


def _usage(usage: dict[str, Any]) -> str:
    read, wrote = usage.get("input_tokens"), usage.get("output_tokens")
    return f"{words.tokens(read)} in, {words.tokens(wrote or 0)} out" if read else ""


def _arrow(before: int, after: int | None) -> str:
    if after is None:
        return words.tokens(before) if before else ""
    return f"{words.tokens(before)} → {words.tokens(after)}"


def _took(began: datetime | None, ended: datetime | None) -> str:
    return words.lasted(ended - began) if began and ended else ""


def _since(began: datetime | None, ended: datetime | None) -> str:
    return began.isoformat(timespec="seconds") if began and not ended else ""


def event_of(key: Key, row: Any) -> dict[str, Any]:
    """Return an event as programs read it: plain values, ids and numbers."""
    if isinstance(row, Turn):
        own = {
            "kind": "turn",
            "thread": row.thread_id,
            "number": row.number,
            "status": row.status,
            "first_position": row.first_position,
            "last_position": row.last_position,
            "usage": row.usage,
        }
    elif isinstance(row, Cycle):
        own = _cycle_event(row)
    else:
        own = {
            "kind": row.cause,
            "revision": row.number,
            "thread": row.thread_id,
            "cycle": row.cycle_id,
            "trigger": row.trigger,
            "author": str(row.author) if row.author else None,
            "message_tokens": [row.message_tokens_before, row.message_tokens_after],
            "observation_tokens": [row.tokens_before, row.tokens_after],
        }
    ended = getattr(row, "finished_at", None)
    return {"source": key.source, "id": key.key, "at": key.at, "ended_at": ended, **own}


def _cycle_event(cycle: Cycle) -> dict[str, Any]:
    written = next(iter(cycle.observations.all()), None)
    return {
        "kind": cycle.kind,
        "thread": cycle.thread_id,
        "status": "interrupted" if cycle.interrupted else cycle.status,
        "trigger": cycle.trigger,
        "first_position": cycle.first_position,
        "last_position": cycle.last_position,
        "message_tokens": cycle.message_tokens,
        "observation_tokens": written.tokens if written else None,
        "model": cycle.model,
        "input_tokens": cycle.input_tokens,
        "output_tokens": cycle.output_tokens,
        "cost": cycle.cost,
        "attempt": cycle.attempt,
        "error": cycle.error,
    }
