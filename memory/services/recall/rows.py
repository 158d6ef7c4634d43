"""Read stored messages as they are shown."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.db.models import TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from memory.engine.recall import Asked, speaker
from memory.engine.recalled import Said, matching, visible_parts
from memory.messages import load, parts_of
from memory.models import Message
from memory.models.thread import MessageQuerySet
from memory.services.blank import MARK

[MARKED] = MARK


def visible(messages: MessageQuerySet) -> MessageQuerySet:
    """Keep the messages that say anything; thinking and what was erased say nothing."""
    marked = messages.annotate(
        marked=Coalesce(KT(f"payload__metadata__{MARKED}"), Value("", TextField()))
    )
    return marked.filter(text__regex=r"\S").exclude(marked="true")


def said(message: Message, asked: Asked, zone: ZoneInfo) -> Said:
    """Return a message with those of its parts that are asked for."""
    parts = () if is_erased(message) else visible_parts(parts_of(load(message.payload)))
    return Said(
        position=message.position,
        speaker=speaker(
            [one.part.kind for one in parts], by_model=message.kind == Message.Kind.RESPONSE
        ),
        at=message.created_at.astimezone(zone),
        parts=matching(parts, asked.part_kind, asked.tool),
        count=len(parts),
    )


def is_erased(message: Message) -> bool:
    """Return whether only a marker is left of the message."""
    return bool((message.payload.get("metadata") or {}).get(MARKED))
