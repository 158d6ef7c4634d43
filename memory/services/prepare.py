"""Prepare a model request: activate what is ready, and say what the Actor sees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.dispatch import dispatch
from memory.engine.lifecycle import Activate, ActivateReflection, Decision, Observe, decide
from memory.models.record import CursorMoved, RecordMoved

from .activate import activate, activate_reflection
from .append import Fence, no_fence
from .early import Early
from .look import View, look
from .request import Block, Prepared, plain, request_blocks

__all__ = ["Block", "Prepared", "due", "plain", "prepare", "prepare_from", "request_blocks"]

MOST_ROUNDS = 4


def prepare(
    thread_id: UUID,
    *,
    prompt_position: int,
    at: datetime,
    may_wait: bool = True,
    fence: Fence = no_fence,
) -> Prepared:
    """Activate what is ready and return the request, in one short transaction.

    ``prompt_position`` is the running turn's prompt, which is always sent raw; ``at`` the
    turn's start, which fixes the day. ``wait_seconds`` of the result is above 0 when the
    turn should wait for an observation and prepare again. Raises Thread.DoesNotExist, and
    whatever the fence raises.
    """
    with transaction.atomic():
        fence()
        view = look(thread_id)
        if view is None:
            return plain(thread_id)
        return prepare_from(view, prompt_position=prompt_position, at=at, may_wait=may_wait)


def prepare_from(
    view: View,
    *,
    prompt_position: int,
    at: datetime,
    may_wait: bool = True,
    early: Early | None = None,
    overhead: int = 0,
) -> Prepared:
    """Activate what is ready in a view just taken and return the request.

    ``early`` is why something is shown before its threshold, if anything asks for it;
    ``overhead`` the tokens of instructions and tools.
    """
    view, wait = settle(view, may_wait=may_wait, early=early or Early())
    blocks = request_blocks(view, prompt_position=prompt_position, at=at, overhead=overhead)
    return Prepared(tuple(blocks), view.revision, wait, view)


def due(view: View, **state: Any) -> Sequence[Decision]:
    """Return what is due in a view."""
    return decide(view.snapshot(**state), view.options.thresholds().given(view.tokens))


def settle(view: View, *, may_wait: bool, early: Early) -> tuple[View, float]:
    """Do what is due and needs no model; return the view after it and how long to wait."""
    decisions = due(view, early=early.observation, early_reflection=early.reflection)
    for _ in range(MOST_ROUNDS):
        ready = next((d for d in decisions if isinstance(d, Activate | ActivateReflection)), None)
        if ready is None:
            break
        view = _apply(view, ready)
        decisions = due(view)
    if any(not isinstance(d, Activate | ActivateReflection) for d in decisions):
        dispatch(view.thread.pk)
    waits = may_wait and any(isinstance(d, Observe) for d in decisions)
    return view, view.options.wait_seconds if waits else 0


def _apply(view: View, decision: Activate | ActivateReflection) -> View:
    """Apply a decision; when another process was first its result is as good as ours."""
    try:
        with transaction.atomic():
            if isinstance(decision, Activate):
                return activate(view, decision)
            activate_reflection(view, trigger=decision.trigger)
    except (RecordMoved, CursorMoved):
        pass
    # This transaction has written: what is read now must not be kept for others.
    return look(view.thread.pk, keep=False) or view
