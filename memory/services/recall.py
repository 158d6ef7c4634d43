"""Bring back the raw messages behind observations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.messages import safe_text
from memory.models import Line, Message
from memory.tokens import clip

MOST_MESSAGES = 20
MESSAGE_TOKENS = 400
MOST_WORDS = 50
LONGEST_WORD = 100
HIGHEST = 2**63 - 1


@dataclass(frozen=True)
class Recalled:
    """Hold one raw message, cut to what fits."""

    position: int
    kind: str
    at: datetime
    text: str


def behind(line: Line) -> list[Message]:
    """Return the messages a line rests on, in order; none when it cites nothing."""
    observation = line.observation
    thread = observation.thread_id or observation.record.thread_id
    if thread is None or line.first_position is None or line.last_position is None:
        return []
    return list(Message.objects.within(thread, line.first_position, line.last_position))


def recall(
    thread_id: UUID,
    *,
    query: str = "",
    first: int | None = None,
    last: int | None = None,
    limit: int = MOST_MESSAGES,
) -> list[Recalled]:
    """Return raw messages of one thread: a range of positions, or those that match words.

    A message matches when it holds any of the words; the ones that hold most come first
    into the limit, and the result is in order. Never leaves the thread.
    """
    messages = Message.objects.filter(thread_id=thread_id).exclude(text="")
    if first is not None or last is not None:
        low, high = _position(first or last or 1), _position(last or first or 1)
        found = list(messages.filter(position__range=(low, high)).order_by("position")[:limit])
    else:
        found = _matching(messages, query, limit)
    return [_recalled(message) for message in found]


def _matching(messages: QuerySet[Message], query: str, limit: int) -> list[Message]:
    # A model may ask for anything; databases bound a pattern's length and a condition's depth.
    found_words = (word.lower()[:LONGEST_WORD] for word in safe_text(query).split())
    words = list(dict.fromkeys(word for word in found_words if len(word) > 2))[:MOST_WORDS]
    if not words:
        return []
    any_word = reduce(or_, (Q(text__icontains=word) for word in words))
    found = messages.filter(any_word)
    ranked = sorted(found, key=lambda m: -sum(word in m.text.lower() for word in words))
    return sorted(ranked[:limit], key=lambda m: m.position)


def _position(number: int) -> int:
    return min(max(number, 0), HIGHEST)


def _recalled(message: Message) -> Recalled:
    return Recalled(
        position=message.position,
        kind=message.kind,
        at=message.created_at,
        text=clip(message.text, MESSAGE_TOKENS),
    )
