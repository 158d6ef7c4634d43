"""Hold a request block by block, whether it was sent or is foreseen.

Both are made from the same thing: the list of blocks that is kept of every request, the texts
these name by hash, and the stored messages they name by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.fields.json import KT
from django.db.models.functions import Left

from agents.services.told import INSTRUCTIONS, TOOLS
from memory.models import Blob, Message
from memory.services.request import LEFT_OUT

MEMORY, MESSAGE, OTHERS, REMINDER, PROMPT = "memory", "message", "others", "reminder", "prompt"
ORDER = (INSTRUCTIONS, TOOLS, LEFT_OUT, MEMORY, MESSAGE, OTHERS, REMINDER, PROMPT)
SHOWN_OF_TEXT = 400


@dataclass(frozen=True)
class Said:
    """Hold what is shown of one stored message, or of a draft of one.

    ``text`` is its beginning.
    """

    position: int
    kind: str
    tokens: int
    text: str
    at: datetime
    erased: bool = False
    draft: bool = False


@dataclass(frozen=True)
class Part:
    """Hold one entry of a request: a text, or a run of messages.

    ``text`` is None where it is no longer kept.
    """

    kind: str
    source: str
    tokens: int
    hash: str = ""
    text: str | None = None
    first: int | None = None
    last: int | None = None
    said: tuple[Said, ...] = ()

    @property
    def is_sent(self) -> bool:
        """Tell whether the model is sent it."""
        return self.kind != LEFT_OUT

    @property
    def of_messages(self) -> bool:
        """Tell whether it is a run of messages."""
        return self.first is not None


@dataclass(frozen=True)
class Inspected:
    """Hold a request. ``key`` is ``next``, or the number of a turn and of a step."""

    key: str
    parts: tuple[Part, ...]
    total: int
    hash: str
    revision: int = 0
    window: int | None = None

    @property
    def sent(self) -> Sequence[Part]:
        """Return the parts that the model is sent, in order."""
        return [part for part in self.parts if part.is_sent]

    @property
    def accounted(self) -> int:
        """Return the tokens of all parts that are sent."""
        return sum(part.tokens for part in self.sent)

    def of(self, kind: str) -> Sequence[Part]:
        """Return the parts of a kind."""
        return [part for part in self.parts if part.kind == kind]

    @property
    def said(self) -> Sequence[Said]:
        """Return all messages that are sent, in order."""
        return [said for part in self.sent for said in part.said]


Blocks = Sequence[Mapping[str, Any]]


def parts_of(
    blocks: Blocks, texts: Mapping[str, str], said: Mapping[int, Said]
) -> tuple[Part, ...]:
    """Return the parts that a list of blocks names."""
    return tuple(_part(block, texts, said) for block in blocks)


def _part(block: Mapping[str, Any], texts: Mapping[str, str], said: Mapping[int, Said]) -> Part:
    kind, source, tokens = block["kind"], block.get("source", ""), block["tokens"]
    first, last = block.get("first"), block.get("last")
    if first is None or last is None:
        digest = block.get("hash", "")
        return Part(kind, source, tokens, digest, texts.get(digest))
    run = tuple(said[at] for at in range(first, last + 1) if at in said)
    return Part(kind, source, tokens, first=first, last=last, said=run)


def texts_of(blocks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts that blocks name, as far as they are kept, in one statement."""
    hashes = {block["hash"] for block in blocks if block.get("hash")}
    if not hashes:
        return {}
    return dict(Blob.objects.filter(hash__in=hashes).values_list("hash", "text"))


def rows_of(thread_id: UUID, blocks: Blocks) -> Any:
    """Select the stored messages that blocks name, in order; None when they name none."""
    runs = [(block["first"], block["last"]) for block in blocks if block.get("first")]
    if not runs:
        return None
    within = [Q(position__range=run) for run in runs]
    return Message.objects.filter(Q(*within, _connector=Q.OR), thread=thread_id).order_by(
        "position"
    )


def said_in(thread_id: UUID, blocks: Blocks) -> dict[int, Said]:
    """Return the stored messages that blocks name, by position, in one statement."""
    rows = rows_of(thread_id, blocks)
    if rows is None:
        return {}
    found = rows.annotate(
        beginning=Left("text", SHOWN_OF_TEXT), mark=KT("payload__metadata__erased")
    ).values_list("position", "kind", "tokens", "beginning", "created_at", "mark")
    return {
        position: Said(position, kind, tokens, text, at, erased=mark is not None)
        for position, kind, tokens, text, at, mark in found
    }
