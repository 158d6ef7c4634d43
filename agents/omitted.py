"""Make the notes of what a request could not hold, shown at the prompt of its turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agents import words
from agents.models import Turn
from agents.page import Scene
from agents.requested import WITHOUT_MEMORY, Request
from memory.services.request import LEFT_OUT


@dataclass(frozen=True)
class Omitted:
    """Show what was left out of a request, and why; ``link`` leads to the request."""

    template: ClassVar = "omitted"
    key: str
    position: int
    words: str
    link: str = ""


def omitted_in(scene: Scene) -> Iterator[Omitted]:
    """Yield a note for each ended turn whose last unusual request lacked something.

    One under way may still be asked again with less, so it says nothing yet.
    """
    for turn in reversed(scene.turns):
        if turn.first_position is None or turn.status == Turn.Status.RUNNING:
            continue
        text = " ".join(_sentences(_lacking(scene.requests.get(turn.pk, ()))))
        if text:
            link = f"/context/{scene.thread_id}/requests/{turn.number}/"
            yield Omitted(f"omitted-{turn.number}", turn.first_position, text, link)


def _lacking(requests: Sequence[Request]) -> Sequence[Mapping[str, Any]]:
    """Return what the last request that lacked something says of it."""
    return next((each.lacking for each in reversed(requests) if each.lacking), ())


def _sentences(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    dropped = [block for block in blocks if block["kind"] == LEFT_OUT]
    if dropped:
        spans = [_span(block["first"], block["last"]) for block in dropped]
        tokens = words.tokens(sum(block["tokens"] for block in dropped))
        yield (
            f"Left out of this request: {' and '.join(spans)}, {tokens} tokens. "
            "The model’s window had no room for them; they stay here."
        )
    _, _, why = next((_bare(block) for block in blocks if _bare(block)[1]), ("", "", ""))
    if why:
        yield f"This request was sent without memory: {why}"


def _bare(block: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(block.get("source", "")).partition(WITHOUT_MEMORY)


def _span(first: int, last: int) -> str:
    return f"message {first}" if first == last else f"messages {first}–{last}"
