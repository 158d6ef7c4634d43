"""Tell of the requests that were sent for a turn what its log shows of them.

A request lists all it held, block by block; of a long conversation that is more than the log
itself. What pages keep of it is a few numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agents.models import RequestSnapshot
from memory.services.request import LEFT_OUT

#: The blocks of a request that memory wrote.
OF_MEMORY = ("memory", "others", "reminder")
WITHOUT_MEMORY = "without memory: "


@dataclass(frozen=True, slots=True)
class Request:
    """Hold what a request took in tokens, and the blocks that say what it had no room for."""

    step: int
    total: int
    of_memory: int
    lacking: tuple[Mapping[str, Any], ...]


def requests_of(turns: Collection[UUID]) -> dict[UUID, list[Request]]:
    """Return the requests of each turn, by the turn's id, in order."""
    found: dict[UUID, list[Request]] = {turn: [] for turn in turns}
    kept = RequestSnapshot.objects.filter(turn__in=turns).order_by("step")
    for turn, step, blocks, total in kept.values_list("turn_id", "step", "blocks", "total"):
        of_memory = sum(block["tokens"] for block in blocks if block["kind"] in OF_MEMORY)
        lacking = tuple(block for block in blocks if _lacks(block))
        found[turn].append(Request(step, total, of_memory, lacking))
    return found


def _lacks(block: Mapping[str, Any]) -> bool:
    return block["kind"] == LEFT_OUT or WITHOUT_MEMORY in str(block.get("source", ""))
