"""Find where a transcript may be cut.

A cut falls after a completed step: no tool call stands on one side with its result on the
other, and a prompt stays together with the answer that follows it. Where no such place
exists nothing may be covered, however long the transcript is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .values import MessageKind


@dataclass(frozen=True, slots=True)
class Pending:
    """Hold what matters for cutting about a message that is not observed yet."""

    position: int
    kind: MessageKind
    tokens: int
    calls: frozenset[str] = frozenset()
    returns: frozenset[str] = frozenset()


def legal_cuts(pending: Sequence[Pending]) -> list[int]:
    """Return the indexes after which the messages may be cut, ascending."""
    cuts = []
    open_calls: set[str] = set()
    for index, message in enumerate(pending):
        open_calls |= message.calls
        open_calls -= message.returns
        following = pending[index + 1] if index + 1 < len(pending) else None
        if not open_calls and _ends_a_step(message, following):
            cuts.append(index)
    return cuts


def _ends_a_step(message: Pending, following: Pending | None) -> bool:
    if message.kind is MessageKind.RESPONSE or message.returns:
        return True
    return following is not None and following.kind is MessageKind.REQUEST


def coverable(pending: Sequence[Pending], *, limit: int) -> Sequence[Pending]:
    """Return the longest prefix that ends at a legal cut and holds at most ``limit`` tokens.

    A first step larger than the limit is returned whole, since it cannot be divided.
    """
    best = 0
    tokens = [0]
    for message in pending:
        tokens.append(tokens[-1] + message.tokens)
    for index in legal_cuts(pending):
        if best and tokens[index + 1] > limit:
            break
        best = index + 1
    return pending[:best]


def keeping(pending: Sequence[Pending], *, floor: int) -> Sequence[Pending]:
    """Return the longest prefix ending at a legal cut that leaves ``floor`` tokens or more.

    When every cut leaves less, the shortest such prefix is returned.
    """
    left = sum(message.tokens for message in pending)
    best, index_before = 0, 0
    for index in legal_cuts(pending):
        left -= sum(message.tokens for message in pending[index_before : index + 1])
        index_before = index + 1
        if best and left < floor:
            break
        best = index + 1
    return pending[:best]
