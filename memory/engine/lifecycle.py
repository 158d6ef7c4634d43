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

A record may hold the memory of several threads. Then what counts is the tokens of all their
raw messages together, each message once; the longest tails are observed first, until enough
is, so that a hundred short conversations are not a hundred calls. The ranges of one decision
belong to one thread each.

Two things show buffered observations before the threshold: a conversation that rested
longer than its provider keeps a prompt, and a change of provider. In both cases the cached
prompt is gone, and a short one is cheaper to build up anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from .activation import chunks_to_activate
from .cuts import Pending, coverable, keeping
from .thresholds import Thresholds
from .values import MessageKind

REFLECTION_TARGET = 0.75
EARLY_SIZE = 0.75


@dataclass(frozen=True, slots=True)
class Chunk:
    """Hold one buffered observation: its range, what it covers and what it says, in tokens.

    ``written`` orders the chunks of several threads; within a thread it never falls.
    """

    id: Hashable
    first_position: int
    last_position: int
    message_tokens: int
    tokens: int
    thread: Hashable = None
    written: int = 0


@dataclass(frozen=True, slots=True)
class Tail:
    """Hold the raw messages of one thread and what of them is buffered."""

    thread: Hashable = None
    pending: tuple[Pending, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    @property
    def tokens(self) -> int:
        """Return the tokens of all raw messages, buffered or not."""
        return sum(message.tokens for message in self.pending)

    @property
    def unbuffered(self) -> tuple[Pending, ...]:
        """Return the raw messages no observation has been written about."""
        through = self.chunks[-1].last_position if self.chunks else 0
        return tuple(message for message in self.pending if message.position > through)


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one visible observation or reflection that a Reflector may condense."""

    id: Hashable
    tokens: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Hold the size of the reflection that waits and of the lines it would take the place of."""

    tokens: int = 0
    source_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold the state of a record and its threads as of one revision.

    ``tails`` are the threads that have raw messages, ``rows`` the visible rows oldest first
    without their pinned lines, ``observation_tokens`` all visible lines. ``stalled_at`` is
    the size at which the last reflection brought nothing. ``early`` and ``early_reflection``
    name why buffered work is shown before its threshold; empty when nothing asks for it.
    ``resting`` tells that what ends with a finished answer may be buffered, however little.
    """

    tails: tuple[Tail, ...] = ()
    rows: tuple[Row, ...] = ()
    observation_tokens: int = 0
    reflection: Waiting | None = None
    stalled_at: int | None = None
    early: str = ""
    early_reflection: str = ""
    resting: bool = False

    @property
    def pending_tokens(self) -> int:
        """Return the tokens of all raw messages of all threads."""
        return sum(tail.tokens for tail in self.tails)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Return the chunks of all threads in the order they were written."""
        chunks = [chunk for tail in self.tails for chunk in tail.chunks]
        if len(self.tails) < 2:
            return tuple(chunks)
        return tuple(sorted(chunks, key=lambda chunk: chunk.written))


@dataclass(frozen=True, slots=True)
class Activate:
    """Show the oldest buffered observations."""

    chunks: tuple[Chunk, ...]
    tokens_before: int
    tokens_after: int
    trigger: str = "threshold"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Write an observation about a range ahead of time."""

    first_position: int
    last_position: int
    tokens: int
    thread: Hashable = None
    trigger: str = "interval"


@dataclass(frozen=True, slots=True)
class Observe:
    """Write an observation about a range and show it at once; the turn waits for it."""

    first_position: int
    last_position: int
    tokens: int
    thread: Hashable = None
    trigger: str = "ceiling"


@dataclass(frozen=True, slots=True)
class ActivateReflection:
    """Let the waiting reflection take the place of its sources."""

    trigger: str = "threshold"


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
    chunks = snapshot.chunks
    due = pending >= thresholds.observe
    if not chunks or not (due or snapshot.early):
        return None
    count = chunks_to_activate(
        [chunk.message_tokens for chunk in chunks], pending=pending, thresholds=thresholds
    )
    shown = chunks[:count]
    return Activate(
        chunks=shown,
        tokens_before=pending,
        tokens_after=max(0, pending - sum(chunk.message_tokens for chunk in shown)),
        trigger=snapshot.early or "threshold",
    )


def after(activate: Activate, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as it is once the activation is done."""
    shown = activate.chunks
    return replace(
        snapshot,
        tails=tuple(_without(tail, shown) for tail in snapshot.tails),
        rows=snapshot.rows + tuple(Row(chunk.id, chunk.tokens) for chunk in shown),
        observation_tokens=snapshot.observation_tokens + sum(chunk.tokens for chunk in shown),
    )


def _without(tail: Tail, shown: Sequence[Chunk]) -> Tail:
    ids = {chunk.id for chunk in shown}
    waiting = tuple(chunk for chunk in tail.chunks if chunk.id not in ids)
    if len(waiting) == len(tail.chunks):
        return tail
    covered = tail.chunks[len(tail.chunks) - len(waiting) - 1].last_position
    raw = tuple(message for message in tail.pending if message.position > covered)
    return replace(tail, pending=raw, chunks=waiting)


def _observation(snapshot: Snapshot, thresholds: Thresholds) -> Iterator[Decision]:
    pending = snapshot.pending_tokens
    if pending >= thresholds.ceiling:
        yield from _at_once(snapshot, thresholds, pending)
    interval = thresholds.buffer_interval(pending)
    if interval is None:
        return
    due = tuple(_ahead(snapshot.tails, thresholds, interval))
    yield from due
    if snapshot.resting and not due:
        at_rest = [tail for tail in snapshot.tails if _rests(tail)]
        yield from (replace(d, trigger="idle") for d in _ahead(at_rest, thresholds, 1))


def _at_once(snapshot: Snapshot, thresholds: Thresholds, pending: int) -> Iterator[Observe]:
    """Yield ranges, longest tail first, until what is left is under the threshold."""
    floor = thresholds.floor // max(1, len(snapshot.tails))
    for tail in longest_first(snapshot.tails):
        ranged = coverable(keeping(tail.unbuffered, floor=floor), limit=thresholds.observe)
        if not ranged:
            continue
        yield Observe(*range_of(ranged), tail.thread)
        pending -= sum(message.tokens for message in ranged)
        if pending < thresholds.observe:
            return


def _rests(tail: Tail) -> bool:
    """Tell whether the last turn of a thread is over: it ends with an answer that calls nothing."""
    last = tail.pending[-1] if tail.pending else None
    return last is not None and last.kind is MessageKind.RESPONSE and not last.calls


def _ahead(tails: Sequence[Tail], thresholds: Thresholds, interval: int) -> Iterator[Buffer]:
    """Yield ranges, longest tail first, until they hold as much as the interval."""
    # Where a cut may be made is only looked for when there can be enough before it.
    if sum(m.tokens for tail in tails for m in tail.unbuffered) < interval:
        return
    ranges = [
        (coverable(tail.unbuffered, limit=thresholds.observe), tail)
        for tail in longest_first(tails)
    ]
    due = [Buffer(*range_of(ranged), tail.thread) for ranged, tail in ranges if ranged]
    if sum(buffer.tokens for buffer in due) < interval:
        return
    taken = 0
    for buffer in due:
        yield buffer
        taken += buffer.tokens
        if taken >= interval:
            return


def longest_first(tails: Sequence[Tail]) -> Sequence[Tail]:
    """Return threads by how much of them no observation has been written about."""
    if len(tails) < 2:
        return tails
    return sorted(tails, key=lambda tail: -sum(message.tokens for message in tail.unbuffered))


def range_of(messages: Sequence[Pending]) -> tuple[int, int, int]:
    """Return the first and last position of messages, and their tokens."""
    tokens = sum(message.tokens for message in messages)
    return messages[0].position, messages[-1].position, tokens


def _reflection(snapshot: Snapshot, thresholds: Thresholds) -> Iterator[Decision]:
    tokens = snapshot.observation_tokens
    if snapshot.reflection is not None:
        if tokens >= thresholds.reflect:
            yield ActivateReflection()
        elif snapshot.early_reflection and _pays_early(snapshot, snapshot.reflection, thresholds):
            yield ActivateReflection(snapshot.early_reflection)
        return
    if not snapshot.rows or snapshot.stalled_at == tokens:
        return
    if tokens >= thresholds.reflect_ceiling:
        yield Reflect(*_slice(snapshot.rows, limit=None))
    elif thresholds.buffer_reflection is not None and tokens >= thresholds.buffer_reflection:
        yield BufferReflection(*_slice(snapshot.rows, limit=thresholds.buffer_reflection))


def _pays_early(snapshot: Snapshot, waiting: Waiting, thresholds: Thresholds) -> bool:
    """Tell whether enough detail remains when a reflection is shown before its threshold."""
    untouched = snapshot.observation_tokens - waiting.source_tokens
    kept = thresholds.reflect - (thresholds.buffer_reflection or thresholds.reflect)
    return untouched >= waiting.tokens and untouched + waiting.tokens >= EARLY_SIZE * kept


def _slice(rows: tuple[Row, ...], limit: int | None) -> tuple[tuple[Hashable, ...], int, int]:
    taken: list[Row] = []
    tokens = 0
    for row in rows:
        if taken and limit is not None and tokens + row.tokens > limit:
            break
        taken.append(row)
        tokens += row.tokens
    return tuple(row.id for row in taken), tokens, round(REFLECTION_TARGET * tokens)
