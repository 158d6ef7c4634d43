"""Observe what no threshold asks for yet, as when a provider refuses a request as too long."""

from __future__ import annotations

import asyncio
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction

from memory.engine.on_demand import but_newest_step

from . import observe
from .claims import Claimed, claims_of
from .cycles import Resolve, resolve_model
from .late import at_most
from .look import look

OVERFLOW = "overflow"


async def observe_pending(
    thread_id: UUID,
    *,
    seconds: float,
    trigger: str = OVERFLOW,
    resolve: Resolve = resolve_model,
) -> None:
    """Observe and show what is pending in a thread, but its last step, however little it is.

    Waits at most so many seconds, for a cycle that is under way first; what takes longer goes
    on in the background. A failed observation raises nothing.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    # Nobody can observe the thread while another does: this only waits when one does.
    await observe.observe_while_waiting(thread_id, seconds=seconds, resolve=resolve)
    claimed = await sync_to_async(claim_pending)(thread_id, trigger=trigger)
    if claimed is None:
        return
    await at_most(ends_at - loop.time(), observe.run(claimed, resolve=resolve))


def claim_pending(thread_id: UUID, *, trigger: str = OVERFLOW) -> Claimed | None:
    """Claim the unbuffered messages of a thread, but its last step; None when there are none."""
    with transaction.atomic():
        view = look(thread_id, lanes=True)
        if view is None:
            return None
        # What the last step brought is what the next is about: it stays as it is.
        limit = view.options.thresholds().given(view.tokens).observe
        wanted = but_newest_step(view.tails[0].tail, limit=limit)
        if wanted is None:
            return None
        claimed = claims_of(view, [wanted], waiting=True, trigger=trigger)
        return next(iter(claimed), None)
