"""Remember for a day what the next request was foreseen to be, to compare it with what was sent.

Only what the page shows is remembered, beside the database: a prediction is not part of the
conversation. A process without a shared cache knows only what it foresaw itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.core.cache import cache

DAY = 24 * 3600


@dataclass(frozen=True)
class Prediction:
    """Hold what was foreseen: when, as of which revision, and the hash of each block."""

    at: str
    hash: str
    revision: int
    blocks: tuple[dict[str, Any], ...]


def remember(thread_id: UUID, position: int, prediction: Prediction) -> None:
    """Keep what was foreseen last of the request whose prompt gets a position."""
    cache.set(_key(thread_id, position), asdict(prediction), DAY)


def recalled(thread_id: UUID, position: int | None) -> Prediction | None:
    """Return what was foreseen last of the request of a prompt, if it is known."""
    kept = cache.get(_key(thread_id, position)) if position else None
    return None if kept is None else Prediction(**{**kept, "blocks": tuple(kept["blocks"])})


def _key(thread_id: UUID, position: int | None) -> str:
    return f"foreseen:{thread_id}:{position}"
