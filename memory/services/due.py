"""Run what is due in the background, until nothing is."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction

from . import observe, reflect
from .cycles import Resolve, resolve_model
from .look import look


async def run_due(thread_id: UUID, *, resolve: Resolve = resolve_model) -> int:
    """Claim and run due cycles of a thread and its record one by one; return how many.

    A failed one ends the run: its lane rests, and the sweep comes back to it.
    """
    cycles = 0
    while claimed := await sync_to_async(claim)(thread_id):
        cycles += 1
        if isinstance(claimed, observe.Claimed):
            went_well = await observe.run(claimed, resolve=resolve)
        else:
            went_well = await reflect.run(claimed, resolve=resolve)
        if not went_well:
            break
    return cycles


def claim(thread_id: UUID) -> observe.Claimed | reflect.Claimed | None:
    """Claim the cycle that is due for a thread or its record, an observation first."""
    with transaction.atomic():
        view = look(thread_id)
        if view is None:
            return None
        return observe.claim_of(view) or reflect.claim_of(view)
