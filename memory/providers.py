"""Ask no provider for too much at once.

All calls of a process to one provider share its slots, whoever makes them: Actor, Observer or
Reflector. A call takes a slot for as long as its answer streams.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from weakref import WeakKeyDictionary

from pydantic_ai.concurrency import AbstractConcurrencyLimiter
from pydantic_ai.models import Model
from pydantic_ai.models.concurrency import ConcurrencyLimitedModel

from memory.tiers import offline_mode

__all__ = ["Slots", "bounded", "provider_of"]


class Slots(AbstractConcurrencyLimiter):
    """Hold the slots of one provider, so many on each event loop: a process uses one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    async def acquire(self, source: str) -> None:
        """Take a slot, waiting for one."""
        await self._here().acquire()

    def release(self) -> None:
        """Give a slot back."""
        self._here().release()

    def _here(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._of_loop.setdefault(loop, asyncio.Semaphore(self._most))


def bounded(name: str, model: Model, most: int, *, base_url: str = "") -> Model:
    """Return a model whose calls wait while ``most`` of its provider are under way; 0: never.

    The offline model is no provider's.
    """
    if not most or offline_mode(name) is not None:
        return model
    return ConcurrencyLimitedModel(model, _slots(provider_of(name, base_url), most))


def provider_of(name: str, base_url: str = "") -> str:
    """Return what the slots of a model's name are shared under: its provider, and whose address."""
    provider, _, model = name.partition(":")
    _, _, address = model.partition("@")
    return f"{provider} {address or base_url}"


@lru_cache(maxsize=256)
def _slots(provider: str, most: int) -> Slots:
    return Slots(most)
