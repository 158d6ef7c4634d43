"""Carry out what people ask for on a page: it runs in the background, and its cycles show it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from asgiref.sync import sync_to_async

from memory.dispatch import ask
from memory.models import Thread

from . import operate
from .change import Refused
from .cycles import Resolve, resolve_model
from .look import View

logger = logging.getLogger(__name__)


def ask_for(operation: str, thread_id: UUID) -> None:
    """Have an operation of ``memory.dispatch.OPERATIONS`` carried out on a thread's memory.

    Raises Refused, in a sentence for people, when there is nothing to do.
    """
    view = operate.remembered(thread_id)
    why = _NOTHING[operation](view)
    if why:
        raise Refused(why)
    ask(operation, thread_id)


async def carry_out(
    operation: str, thread_id: UUID, *, resolve: Resolve = resolve_model
) -> operate.Outcome | None:
    """Carry out an operation that was asked for; None when there is nothing to do any more."""
    try:
        return await _ACTS[operation](thread_id, resolve=resolve)
    except (Refused, Thread.DoesNotExist) as refusal:
        logger.info("%s of thread %s was not carried out: %s", operation, thread_id, refusal)
        return None


async def _activate(thread_id: UUID, *, resolve: Resolve) -> operate.Outcome:
    """Show the chunks that wait, and the reflection that waits for them."""
    outcome = await operate.activate_now(thread_id)
    await sync_to_async(operate.show_reflection)(thread_id)
    return outcome


_ACTS: dict[str, Callable[..., Awaitable[operate.Outcome]]] = {
    "observe": operate.observe_now,
    "buffer": operate.buffer_now,
    "activate": _activate,
    "reflect": operate.reflect_now,
}


def _unobserved(view: View) -> str:
    return "" if view.buffered or operate.everything_at_once(view) else operate.NOTHING_RAW


def _unbuffered(view: View) -> str:
    return "" if operate.everything_ahead(view) else operate.NOTHING_RAW


def _unshown(view: View) -> str:
    waits = any(tail.buffered for tail in view.tails) or view.reflection is not None
    return "" if waits else "There is nothing to activate: nothing is buffered."


def _loose(view: View) -> str:
    return "" if view.lines else operate.NOTHING_LOOSE


_NOTHING: dict[str, Callable[[View], str]] = {
    "observe": _unobserved,
    "buffer": _unbuffered,
    "activate": _unshown,
    "reflect": _loose,
}
