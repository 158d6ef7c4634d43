"""Decide what is done because somebody asks for it, whatever the thresholds say.

Cuts fall where they always do: after completed steps. So what is asked for may be less than
everything, and a prompt that is being answered is never taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate

from .cuts import Pending, coverable, legal_cuts
from .lifecycle import Activate, Buffer, Observe, Snapshot, Tail, longest_first, range_of

MANUAL = "manual"


def activate_all(snapshot: Snapshot, *, down_to: int = 0, keep: Hashable = None) -> Activate | None:
    """Show the oldest chunks until at most so many tokens are raw; None when there is none to.

    What the newest step of the thread ``keep`` is in stays out.
    """
    pending = snapshot.pending_tokens
    newest = {tail.thread: _newest_step(tail.pending) for tail in snapshot.tails}.get(keep)
    chunks = tuple(
        chunk
        for chunk in snapshot.chunks
        if keep is None or chunk.thread != keep or newest is None or chunk.last_position < newest
    )
    removed = list(accumulate(chunk.message_tokens for chunk in chunks))
    enough = (n for n, tokens in enumerate(removed, 1) if pending - tokens <= down_to)
    shown = chunks[: next(enough, len(chunks))] if pending > down_to else ()
    if not shown:
        return None
    left = max(0, pending - removed[len(shown) - 1])
    return Activate(shown, tokens_before=pending, tokens_after=left, trigger=MANUAL)


def observe_all(snapshot: Snapshot, *, limit: int) -> tuple[Observe, ...]:
    """Return what can be observed of each thread, at most about ``limit`` tokens, longest first."""
    ranges = (
        (tail.thread, coverable(tail.unbuffered, limit=limit))
        for tail in longest_first(snapshot.tails)
    )
    return tuple(Observe(*range_of(ranged), thread) for thread, ranged in ranges if ranged)


def ahead(due: Iterable[Observe]) -> tuple[Buffer, ...]:
    """Return the same, but to be written ahead: a shared memory shows it together later."""
    return tuple(
        Buffer(each.first_position, each.last_position, each.tokens, each.thread) for each in due
    )


def observe_down_to(
    snapshot: Snapshot, *, target: int, limit: int, keep: Hashable = None
) -> tuple[Observe, ...]:
    """Return the oldest ranges without which at most ``target`` tokens are raw.

    The newest step of the thread ``keep`` is left raw in any case. Chunks count as raw.
    """
    excess = snapshot.pending_tokens - target
    due: list[Observe] = []
    for tail in longest_first(snapshot.tails):
        if excess <= 0:
            break
        raw = tail.unbuffered
        if tail.thread == keep:
            raw = raw[: without_newest_step(raw)]
        ranged = _at_least(raw, tokens=excess, limit=limit)
        if ranged:
            due.append(Observe(*range_of(ranged), tail.thread))
            excess -= due[-1].tokens
    return tuple(due)


def but_newest_step(tail: Tail, *, limit: int) -> Observe | None:
    """Return what can be observed of a thread without its newest step, if there is anything."""
    raw = tail.unbuffered
    ranged = coverable(raw[: without_newest_step(raw)], limit=limit)
    return Observe(*range_of(ranged), tail.thread) if ranged else None


def without_newest_step(pending: Sequence[Pending]) -> int:
    """Return how many messages come before the newest step, which may be under way."""
    ends = [index + 1 for index in legal_cuts(pending) if index + 1 < len(pending)]
    return ends[-1] if ends else 0


def _newest_step(pending: Sequence[Pending]) -> int | None:
    """Return the position at which the newest step begins."""
    before = without_newest_step(pending)
    return pending[before].position if before < len(pending) else None


def _at_least(pending: Sequence[Pending], *, tokens: int, limit: int) -> Sequence[Pending]:
    """Return the shortest prefix with so many tokens, ending at a cut, within the limit."""
    longest = coverable(pending, limit=limit)
    held = list(accumulate(message.tokens for message in longest))
    ends = [index + 1 for index in legal_cuts(pending) if index < len(longest)]
    enough = (end for end in ends if held[end - 1] >= tokens)
    return longest[: next(enough, len(longest))]
