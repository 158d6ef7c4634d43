"""Say what would be due if options or the scope were others; nothing is written.

The decision function itself is asked, about rows as they are. Another scope is tried by changing
it in a transaction that is rolled back, so that what is said is what would happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from django.db import transaction

from memory.config import MemoryOptions
from memory.engine.lifecycle import (
    Activate,
    ActivateReflection,
    Buffer,
    BufferReflection,
    Decision,
    Observe,
    Reflect,
)
from memory.engine.thresholds import Thresholds
from memory.models import Thread
from memory.models.state import read_state

from .change import Refused
from .look import View, look
from .prepare import due
from .scope import change_scope

Verb = Literal[
    "activate", "buffer", "observe", "activate reflection", "buffer reflection", "reflect"
]

_VERBS: dict[type, Verb] = {
    Activate: "activate",
    Buffer: "buffer",
    Observe: "observe",
    ActivateReflection: "activate reflection",
    BufferReflection: "buffer reflection",
    Reflect: "reflect",
}


@dataclass(frozen=True)
class Due:
    """Hold what would be done: how many tokens are read or taken away, in how many parts.

    Parts are ranges to observe, chunks to activate, rows to condense.
    """

    verb: Verb
    tokens: int
    parts: int = 1


@dataclass(frozen=True)
class Outlook:
    """Hold a record as it would be, and what would be due in it.

    ``pending`` are raw tokens of all its conversations, ``buffered`` those of them that wait,
    ``lines`` the tokens of what is visible.
    """

    pending: int
    buffered: int
    lines: int
    limits: Thresholds
    options: MemoryOptions
    actor_model: str
    due: tuple[Due, ...]

    def tokens(self, *verbs: Verb) -> int:
        """Return how many tokens some kinds of work would read."""
        return sum(each.tokens for each in self.due if each.verb in verbs)


def outlook(thread_id: UUID, options: MemoryOptions | None = None) -> Outlook | None:
    """Return what would be due in a thread's record under options, or those in force.

    None for a thread that does not remember. Raises Thread.DoesNotExist.
    """
    # Only a thread without a record yet is given one to look at.
    with nullcontext() if read_state(thread_id).record is not None else _undone():
        view = look(thread_id, keep=False)
    if view is None:
        return None
    return _outlook(view if options is None else replace(view, options=options))


def outlook_in_scope(
    thread_id: UUID, scope: str, *, fence: Callable[[], None] = lambda: None
) -> Outlook | None:
    """Return what would be due in a thread's record if its resource had another scope.

    Raises Refused where the scope could not be changed.
    """
    resource = Thread.objects.values_list("resource", flat=True).filter(pk=thread_id).first()
    if resource is None:
        raise Refused("There is no such conversation.")
    with _undone():
        change_scope(resource, scope, fence=fence)
        view = look(thread_id, keep=False)
        return None if view is None else _outlook(view)


@contextmanager
def _undone() -> Iterator[None]:
    """Roll back all that the block writes, if anything."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _outlook(view: View) -> Outlook:
    snapshot = view.snapshot()
    return Outlook(
        pending=snapshot.pending_tokens,
        buffered=sum(chunk.message_tokens for chunk in snapshot.chunks),
        lines=view.tokens,
        limits=view.options.thresholds().given(view.tokens),
        options=view.options,
        actor_model=view.actor_model,
        due=_joined(due(view)),
    )


def _joined(decisions: Sequence[Decision]) -> tuple[Due, ...]:
    """Return decisions with those of a kind added up."""
    found: dict[Verb, Due] = {}
    for decision in decisions:
        verb = _VERBS[type(decision)]
        tokens, parts = _size(decision)
        before = found.get(verb, Due(verb, 0, 0))
        found[verb] = Due(verb, before.tokens + tokens, before.parts + parts)
    return tuple(found.values())


def _size(decision: Decision) -> tuple[int, int]:
    if isinstance(decision, Activate):
        return decision.tokens_before - decision.tokens_after, len(decision.chunks)
    if isinstance(decision, ActivateReflection):
        return 0, 1
    if isinstance(decision, Reflect | BufferReflection):
        return decision.tokens, len(decision.rows)
    return decision.tokens, 1
