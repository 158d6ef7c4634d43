"""Decide what is due.

Theory of operation
-------------------
A message is *raw* until an observation that covers it becomes visible; raw messages reach
the Actor whole, covered ones as lines. Raw messages go through these states, always as a
prefix of the thread and always cut after a completed step::

    raw ── Buffer ──► raw, buffered ── Activate ──► covered
     └──────────────── Observe ───────────────────────►┘

*Buffer* writes an observation ahead of time and shows nothing: it runs in the background
each time enough unbuffered messages have gathered, also while the total is past the
threshold. *Activate* shows buffered observations when all raw messages together reach the
threshold; it needs no model and is done at once, between two requests. *Observe* is what
remains when neither kept up: past the ceiling the turn waits for it, once and with a bound.
With buffering off the threshold is the ceiling.

Lines are condensed likewise: *BufferReflection* writes a reflection of the oldest rows
ahead of time, *ActivateReflection* lets it take their place when all visible lines reach
the threshold, and *Reflect* condenses and shows in one go once they pass their ceiling.
No turn waits for a reflection.

One thread has one Observer at a time and one record one Reflector, so nothing of a kind is
due while one is running; only Observe is decided all the same, since its caller then waits
for the running one. Activation comes first: what else is due is judged as if it were done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from .activation import chunks_to_activate
from .cuts import Pending, coverable, keeping
from .thresholds import Thresholds

REFLECTION_TARGET = 0.75


@dataclass(frozen=True, slots=True)
class Chunk:
    """Hold one buffered observation: its range, what it covers and what it says, in tokens."""

    id: Hashable
    first_position: int
    last_position: int
    message_tokens: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one visible observation or reflection that a Reflector may condense."""

    id: Hashable
    tokens: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold the state of a thread and its record as of one revision.

    ``pending`` are the raw messages, ``chunks`` what of them is buffered, ``rows`` the
    visible rows oldest first without their pinned lines, ``observation_tokens`` all visible
    lines. ``stalled_at`` is the size at which the last reflection brought nothing.
    """

    pending: tuple[Pending, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    rows: tuple[Row, ...] = ()
    observation_tokens: int = 0
    observing: bool = False
    reflecting: bool = False
    reflection_waits: bool = False
    stalled_at: int | None = None

    @property
    def pending_tokens(self) -> int:
        """Return the tokens of all raw messages, buffered or not."""
        return sum(message.tokens for message in self.pending)

    @property
    def unbuffered(self) -> tuple[Pending, ...]:
        """Return the raw messages no observation has been written about."""
        through = self.chunks[-1].last_position if self.chunks else 0
        return tuple(message for message in self.pending if message.position > through)


@dataclass(frozen=True, slots=True)
class Activate:
    """Show the oldest ``count`` buffered observations; they cover up to ``last_position``."""

    count: int
    last_position: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Write an observation about a range ahead of time."""

    first_position: int
    last_position: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Observe:
    """Write an observation about a range and show it at once; the turn waits for it."""

    first_position: int
    last_position: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ActivateReflection:
    """Let the waiting reflection take the place of its sources."""


@dataclass(frozen=True, slots=True)
class BufferReflection:
    """Condense the oldest rows ahead of time, to fewer than ``target`` tokens."""

    rows: tuple[Hashable, ...]
    tokens: int
    target: int


@dataclass(frozen=True, slots=True)
class Reflect:
    """Condense all rows and show the result at once."""

    rows: tuple[Hashable, ...]
    tokens: int
    target: int


Decision = Activate | Buffer | Observe | ActivateReflection | BufferReflection | Reflect


def decide(snapshot: Snapshot, thresholds: Thresholds) -> tuple[Decision, ...]:
    """Return what is due, in the order in which it is to be done."""
    return tuple(_decisions(snapshot, thresholds))


def _decisions(snapshot: Snapshot, thresholds: Thresholds) -> Iterator[Decision]:
    activate = _activation(snapshot, thresholds)
    if activate:
        yield activate
        snapshot = after(activate, snapshot)
    yield from _observation(snapshot, thresholds)
    yield from _reflection(snapshot, thresholds)


def _activation(snapshot: Snapshot, thresholds: Thresholds) -> Activate | None:
    pending = snapshot.pending_tokens
    if not snapshot.chunks or pending < thresholds.observe:
        return None
    count = chunks_to_activate(
        [chunk.message_tokens for chunk in snapshot.chunks], pending=pending, thresholds=thresholds
    )
    removed = sum(chunk.message_tokens for chunk in snapshot.chunks[:count])
    return Activate(
        count=count,
        last_position=snapshot.chunks[count - 1].last_position,
        tokens_before=pending,
        tokens_after=max(0, pending - removed),
    )


def after(activate: Activate, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as it is once the activation is done."""
    shown, waiting = snapshot.chunks[: activate.count], snapshot.chunks[activate.count :]
    return replace(
        snapshot,
        pending=tuple(m for m in snapshot.pending if m.position > activate.last_position),
        chunks=waiting,
        rows=snapshot.rows + tuple(Row(chunk.id, chunk.tokens) for chunk in shown),
        observation_tokens=snapshot.observation_tokens + sum(chunk.tokens for chunk in shown),
    )


def _observation(snapshot: Snapshot, thresholds: Thresholds) -> Iterator[Decision]:
    pending = snapshot.pending_tokens
    if pending >= thresholds.ceiling:
        to_observe = keeping(snapshot.unbuffered, floor=thresholds.floor)
        to_observe = coverable(to_observe, limit=thresholds.observe)
        if to_observe:
            yield Observe(*_range(to_observe))
    interval = thresholds.buffer_interval(pending)
    if interval is None or snapshot.observing:
        return
    to_buffer = coverable(snapshot.unbuffered, limit=thresholds.observe)
    if to_buffer and sum(message.tokens for message in to_buffer) >= interval:
        yield Buffer(*_range(to_buffer))


def _range(messages: Sequence[Pending]) -> tuple[int, int, int]:
    tokens = sum(message.tokens for message in messages)
    return messages[0].position, messages[-1].position, tokens


def _reflection(snapshot: Snapshot, thresholds: Thresholds) -> Iterator[Decision]:
    tokens = snapshot.observation_tokens
    if snapshot.reflection_waits:
        if tokens >= thresholds.reflect:
            yield ActivateReflection()
        return
    if snapshot.reflecting or not snapshot.rows or snapshot.stalled_at == tokens:
        return
    if tokens >= thresholds.reflect_ceiling:
        yield Reflect(*_slice(snapshot.rows, limit=None))
    elif thresholds.buffer_reflection is not None and tokens >= thresholds.buffer_reflection:
        yield BufferReflection(*_slice(snapshot.rows, limit=thresholds.buffer_reflection))


def _slice(rows: tuple[Row, ...], limit: int | None) -> tuple[tuple[Hashable, ...], int, int]:
    taken: list[Row] = []
    tokens = 0
    for row in rows:
        if taken and limit is not None and tokens + row.tokens > limit:
            break
        taken.append(row)
        tokens += row.tokens
    return tuple(row.id for row in taken), tokens, round(REFLECTION_TARGET * tokens)
