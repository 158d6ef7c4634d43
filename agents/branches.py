"""Show where a conversation has branches: other answers to a prompt, or other prompts."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from agents.page import Scene
from memory.models import Thread


@dataclass(frozen=True)
class Branch:
    """Show which of several branches this is; the links lead to the one before and after."""

    place: int
    count: int
    before: str = ""
    after: str = ""


def branches_of(scene: Scene, positions: Sequence[int]) -> dict[int, Branch]:
    """Return the branches of a thread by the first of the given positions that they differ at."""
    found: dict[int, Branch] = {}
    for fork, threads in _families(scene).items():
        at = bisect_right(positions, fork)
        if at < len(positions) and (at or fork == 0 or positions[0] == fork + 1):
            found[positions[at]] = _branch(scene.thread_id, threads)
    return found


def _families(scene: Scene) -> dict[int, list[Thread]]:
    """Return by fork the threads that go on from it, the oldest first; this one is in each."""
    thread = scene.thread
    families: dict[int, set[Thread]] = defaultdict(lambda: {thread})
    for each in scene.relatives.values():
        if each.parent_id == thread.pk:
            families[each.fork_position or 0].add(each)
        elif thread.fork_position is not None:
            # The thread this one was forked from, or another that was forked there.
            families[thread.fork_position].add(each)
    return {
        position: sorted(threads, key=lambda each: each.pk)
        for position, threads in families.items()
    }


def _branch(thread_id: UUID, threads: Sequence[Thread]) -> Branch:
    at = [each.pk for each in threads].index(thread_id)
    return Branch(
        place=at + 1,
        count=len(threads),
        before=f"/chat/{threads[at - 1].pk}/" if at else "",
        after=f"/chat/{threads[at + 1].pk}/" if at + 1 < len(threads) else "",
    )
