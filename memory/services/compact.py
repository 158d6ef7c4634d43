"""Bring a memory down to a size, or bring all work on it to an end."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from asgiref.sync import sync_to_async

from memory.engine import on_demand
from memory.engine.lifecycle import Buffer, Observe

from .change import Refused
from .cycles import Resolve, resolve_model
from .look import View
from .operate import (
    WAIT_SECONDS,
    Operation,
    Outcome,
    Progress,
    call_size,
    gauges,
    remembered,
    show_reflection,
    unheard,
)


async def compact(
    thread_id: UUID,
    target_tokens: int,
    *,
    resolve: Resolve = resolve_model,
    progress: Progress = unheard,
    wait_seconds: float = WAIT_SECONDS,
) -> Outcome:
    """Cover the oldest messages until at most ``target_tokens`` are raw.

    Of a shared record each round is shown together, in one revision for all its threads.
    Shows what is buffered first, then observes range after range, telling ``progress`` after
    each round; the thread's newest step stays raw in any case. Lines that are over their
    threshold then are condensed. Raises Refused.
    """
    if target_tokens < 0:
        raise Refused(f"target_tokens = {target_tokens}: must be 0 or more.")

    def excess(view: View) -> Sequence[Observe]:
        return on_demand.observe_down_to(
            view.snapshot(), target=target_tokens, limit=call_size(view), keep=thread_id
        )

    def excess_ahead(view: View) -> Sequence[Buffer]:
        return on_demand.ahead(excess(view))

    async def show() -> None:
        await operation.activate(down_to=target_tokens, keep=thread_id)

    operation = Operation(thread_id, resolve, wait_seconds, progress)
    before = await sync_to_async(gauges)(thread_id)
    shared = await operation.shared()
    await show()
    await operation.rounds(excess_ahead if shared else excess, at_once=not shared, then=show)
    await _reflect_if_due(operation)
    nothing = (
        f"{before.raw:,} tokens are raw, which is not more than {target_tokens:,}."
        if before.raw <= target_tokens
        else "Only the newest step is raw, and it stays."
    )
    return await sync_to_async(operation.outcome)(before, nothing)


async def finalize(
    thread_id: UUID, *, resolve: Resolve = resolve_model, wait_seconds: float = WAIT_SECONDS
) -> Outcome:
    """Wait for what is under way, show what is buffered, and observe and reflect what is due.

    Raises Refused for a thread that does not remember.
    """
    operation = Operation(thread_id, resolve, wait_seconds)
    before = await sync_to_async(gauges)(thread_id)
    await operation.settle()
    await operation.activate()
    if await sync_to_async(_is_over)(thread_id):
        await operation.cover()
    await _reflect_if_due(operation)
    return await sync_to_async(operation.outcome)(before, "Nothing is buffered and nothing is due.")


def _is_over(thread_id: UUID) -> bool:
    view = remembered(thread_id)
    thresholds = view.options.thresholds().given(view.tokens)
    return view.snapshot().pending_tokens >= thresholds.observe


async def _reflect_if_due(operation: Operation) -> None:
    """Show the reflection that waits, and condense what is over its threshold still."""
    if not await sync_to_async(_has_too_many_lines)(operation.thread_id):
        return
    await sync_to_async(show_reflection)(operation.thread_id)
    if await sync_to_async(_has_too_many_lines)(operation.thread_id):
        await operation.reflect("")


def _has_too_many_lines(thread_id: UUID) -> bool:
    view = remembered(thread_id)
    return view.tokens >= view.options.thresholds().reflect
