"""Show what a line of the memory rests on."""

from __future__ import annotations

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from memory.models import Line, Message
from memory.services.recall import behind

from .alone import partial_or_page

MOST_MESSAGES = 60
LETTERS = {"high": "H", "medium": "M", "low": "L", "done": "✓", "plain": "·"}


@require_GET
def sources(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Show the raw messages behind a line."""
    mine = Line.objects.filter(observation__record__resource__members=request.user)  # type: ignore[misc]
    related = "observation__record__resource", "observation__cycle"
    line = get_object_or_404(mine.select_related(*related), pk=line_id)
    zone = ZoneInfo(line.observation.record.resource.time_zone)
    messages = behind(line)
    context = {
        "line": {"kind": line.kind, "letter": LETTERS[line.kind], "text": line.text},
        "messages": [_shown(message, zone) for message in messages[:MOST_MESSAGES]],
        "words": _words(line, len(messages)),
    }
    back = line.observation.thread_id or line.observation.record.thread_id
    return partial_or_page(request, "memory/sources.html", context, title="Sources", thread=back)


def _words(line: Line, count: int) -> str:
    if not count:
        return "No message stands behind this line: a person wrote it, or it was condensed."
    shown = f", the first {MOST_MESSAGES} shown" if count > MOST_MESSAGES else ""
    noun = "message" if count == 1 else "messages"
    cycle = line.observation.cycle
    by = f" Written by {cycle.model}." if cycle is not None and cycle.model else ""
    return f"Rests on {count} {noun} ({line.first_position}–{line.last_position}){shown}.{by}"


def _shown(message: Message, zone: ZoneInfo) -> dict[str, Any]:
    at = message.created_at.astimezone(zone)
    return {
        "speaker": "User" if message.kind == Message.Kind.REQUEST else "Assistant",
        "at": at.isoformat(),
        "clock": f"{at.day} {at:%b %Y %H:%M}",
        "position": message.position,
        "text": message.text,
    }
