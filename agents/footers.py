"""Say under each reply what the request behind it cost, and where it can be looked at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from agents import words
from agents.models import Turn
from agents.page import Scene
from memory.models import Message


@dataclass(frozen=True)
class Footer:
    """Show what was sent for a reply, how much of it was memory, and whose turn it was."""

    turn: int
    used: str
    memory: str
    link: str


def footers_of(scene: Scene) -> dict[int, Footer]:
    """Return the footers of the replies in the window, by the position of the reply."""
    found: dict[int, Footer] = {}
    for turn, positions in _replies(scene).items():
        # The last reply belongs to the last request: the first ones may lie before the window.
        requests = reversed(scene.requests.get(turn.pk, ()))
        for position, request in zip(reversed(positions), requests, strict=False):
            found[position] = Footer(
                turn=turn.number,
                used=words.tokens(request.total),
                memory=words.tokens(request.of_memory) if request.of_memory else "",
                link=f"/context/{scene.thread_id}/requests/{turn.number}/?step={request.step}",
            )
    return found


def _replies(scene: Scene) -> dict[Turn, list[int]]:
    """Return the positions of the replies of each turn that has ended, in order."""
    end = scene.messages[-1].position if scene.messages else 0
    ended = [t for t in scene.turns if t.first_position and 0 < (t.last_position or 0) <= end]
    by_turn: dict[Turn, list[int]] = defaultdict(list)
    turns = iter(sorted(ended, key=lambda turn: turn.first_position or 0))
    turn = next(turns, None)
    for message in scene.messages:
        while turn is not None and message.position > (turn.last_position or 0):
            turn = next(turns, None)
        if turn is None:
            break
        inside = message.position > (turn.first_position or 0)
        if inside and message.kind == Message.Kind.RESPONSE:
            by_turn[turn].append(message.position)
    return by_turn
