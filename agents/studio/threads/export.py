"""Write a conversation out as Markdown to read, or as JSON Lines to work with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agents import words
from agents.lines import line_shown
from agents.log import named
from memory.models import Line, Message, Thread
from memory.services.look import look
from memory.stored import REFERENCES

AT_ONCE = 500
FORMAT = 1
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})", re.M)
_HEADING = re.compile(r"^ {0,3}(#{1,4}(?:\s|$))")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")


def markdown(thread: Thread, now: datetime) -> Iterator[str]:
    """Yield a conversation as Markdown: its title, what was said, and what is remembered of it."""
    zone = ZoneInfo(thread.resource.time_zone)
    yield f"# {thread}\n\n{thread.resource.name} · agent {thread.agent} · "
    yield f"exported {_moment(now, zone)}\n"
    for row in _messages(thread):
        for speaker, text in _said(row):
            yield f"\n## {speaker} · {_moment(row.created_at, zone)}\n\n{text}\n"
    yield from _remembered(thread, zone)


def jsonl(thread: Thread, now: datetime) -> Iterator[str]:
    """Yield a conversation as JSON Lines: the thread, each message as stored, each visible line."""
    yield _line(
        {
            "type": "thread",
            "format": FORMAT,
            "id": str(thread.pk),
            "title": thread.title,
            "resource": thread.resource.key,
            "agent": thread.agent,
            "remembers": thread.remembers,
            "created_at": thread.created_at.isoformat(),
            "exported_at": now.isoformat(),
        }
    )
    for row in _messages(thread):
        yield _line(
            {
                "type": "message",
                "position": row.position,
                "created_at": row.created_at.isoformat(),
                "tokens": row.tokens,
                "message": row.payload,
            }
        )
    for line in _lines(thread):
        yield _line(
            {
                "type": "line",
                "id": str(line.pk),
                "kind": line.kind,
                "said_at": line.said_at.isoformat() if line.said_at else None,
                "text": line.text,
                "pinned": line.pinned,
                "first_position": line.first_position,
                "last_position": line.last_position,
            }
        )


def filename(thread: Thread, extension: str) -> str:
    """Return a name for the file of a conversation."""
    name = re.sub(r"[^\w]+", "-", str(thread)).strip("-").lower()[:60] or "conversation"
    return f"{name}-{thread.pk.hex[-8:]}.{extension}"


def _messages(thread: Thread) -> Iterator[Message]:
    rows = Message.objects.filter(thread=thread).order_by("position")
    return rows.iterator(chunk_size=AT_ONCE)


def _lines(thread: Thread) -> list[Line]:
    view = look(thread.pk) if thread.remembers else None
    return [] if view is None else list(view.lines)


def _said(row: Message) -> Iterator[tuple[str, str]]:
    """Yield what each part of a message says, with who says it."""
    for part in row.payload["parts"]:
        match part["part_kind"]:
            case "user-prompt":
                yield "User", _quoted(_prompt(part["content"]))
            case "text" if part["content"].strip():
                yield "Agent", _quoted(part["content"])
            case "tool-call":
                yield f"Call of {part['tool_name']}", _block(part.get("args"))
            case "tool-return" | "retry-prompt":
                name = part.get("tool_name") or "the agent"
                yield f"Result for {name}", _block(part.get("content"))
    names = [_file(row, listed) for listed in row.payload.get(REFERENCES, ())]
    if names:
        yield "Files", "\n".join(f"- {name}" for name in names)


def _prompt(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [item if isinstance(item, str) else item.get("content") for item in content]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _file(row: Message, listed: dict[str, Any]) -> str:
    name, media_type = named(row.payload, listed)
    return f"{name} ({media_type or 'file'}, {words.filesize(listed['size'])})"


def _quoted(text: str) -> str:
    """Return what somebody wrote so that none of it passes for a heading of the export.

    Headings go two levels down, below ours, and code that is not ended ends with the message.
    """
    said, fence, before = [], "", ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            ends = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if ends else fence
        elif opened:
            fence = opened[2]
        elif before.strip() and _UNDERLINE.match(line):
            line = f"\\{line.lstrip(' ')}"
        else:
            line = _HEADING.sub(r"##\1", line)
        said.append(line)
        before = line
    return "\n".join([*said, fence] if fence else said)


def _block(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    longest = max((len(match[2]) for match in _FENCE.finditer(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _remembered(thread: Thread, zone: ZoneInfo) -> Iterator[str]:
    lines = _lines(thread)
    if not lines:
        return
    yield "\n---\n\n# What is remembered\n\n"
    for line in lines:
        shown = line_shown(line, zone)
        at = f"{words.day(line.said_at.astimezone(zone))} {shown.time}" if line.said_at else ""
        said = " ".join(shown.text.split())
        yield f"{'  ' if shown.sub else ''}- {shown.letter} {at.strip()} {said}\n"


def _moment(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{words.day(local)} {words.clock(local)}"


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
