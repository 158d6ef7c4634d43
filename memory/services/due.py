"""Run what is due in the background, until nothing is."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import sync_to_async

from . import observe, reflect
from .cycles import Resolve, resolve_model


async def run_due(thread_id: UUID, *, resolve: Resolve = resolve_model) -> int:
    """Claim and run due cycles of a thread and its record one by one; return how many.

    A failed one ends the run: its lane rests, and the sweep comes back to it.
    """
    cycles = 0
    while True:
        observation = await sync_to_async(observe.claim)(thread_id)
        if observation is not None:
            cycles += 1
            if not await observe.run(observation, resolve=resolve):
                return cycles
            continue
        reflection = await sync_to_async(reflect.claim)(thread_id)
        if reflection is None:
            return cycles
        cycles += 1
        if not await reflect.run(reflection, resolve=resolve):
            return cycles
