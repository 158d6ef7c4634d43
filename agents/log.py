"""Make the entries of a conversation's log: messages, tools, gaps, ends of turns, markers."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from agents import words
from agents.markers import Marker, markers_of
from agents.models import Turn
from agents.page import WINDOW, Scene
from memory.models import Message

GAP = timedelta(minutes=10)
LONGEST_RESULT = 20_000


@dataclass(frozen=True)
class Said:
    """Show what somebody said."""

    template: ClassVar = "said"
    key: str
    by: str
    text: str
    at: str
    clock: str
    tokens: str
    memory: str

    @property
    def speaker(self) -> str:
        """Return who speaks, for screen readers."""
        return "You" if self.by == "user" else "Agent"


@dataclass(frozen=True)
class Tool:
    """Show a tool's call and what it returned; ``status`` tells how it went."""

    template: ClassVar = "tool"
    key: str
    tool: str
    arguments: str
    result: str
    status: str
    memory: str

    @property
    def brief(self) -> str:
        """Return the arguments on one line."""
        return words.first_words(self.arguments, 60)


@dataclass(frozen=True)
class Thought:
    """Show what the model thought before it answered."""

    template: ClassVar = "thought"
    key: str
    text: str
    memory: str


@dataclass(frozen=True)
class Gap:
    """Show that time passed between two messages."""

    template: ClassVar = "gap"
    key: str
    at: str
    words: str


@dataclass(frozen=True)
class Ended:
    """Show that a turn ended otherwise than with an answer."""

    template: ClassVar = "ended"
    key: str
    state: str
    words: str


Entry = Said | Tool | Thought | Gap | Ended | Marker

_ENDS = {
    Turn.Status.STOPPED: ("interrupted", "Stopped by you"),
    Turn.Status.INTERRUPTED: ("interrupted", "Interrupted"),
    Turn.Status.FAILED: ("failed", "✕ The answer failed"),
}


@dataclass(frozen=True)
class Log:
    """Hold a window of a log. ``mark`` changes when what memory covers does."""

    entries: tuple[Entry, ...]
    first: int
    mark: str
    earlier_from: int
    hint: str = ""

    @property
    def has_earlier(self) -> bool:
        """Tell whether there are messages before the window."""
        return self.earlier_from > 0

    @property
    def starters(self) -> tuple[str, ...]:
        """Return things to say first."""
        return (
            "I am planning a week in Lisbon in May.",
            "My sister Mara is allergic to peanuts.",
            "What do you remember about me?",
        )


def log_of(scene: Scene, *, hint: str = "", before: int | None = None) -> Log:
    """Return the log of a scene, or the part of it before a position."""
    rows = [m for m in scene.messages if before is None or m.position < before]
    short = len(scene.messages) < WINDOW and before is None
    return Log(
        entries=tuple(_entries(scene, rows, whole=before is None)),
        first=scene.first,
        mark=f"{scene.coverage.covered}-{scene.coverage.buffered}",
        earlier_from=0 if short else scene.earlier_start(),
        hint=hint,
    )


def _entries(scene: Scene, rows: list[Message], *, whole: bool) -> Iterator[Entry]:
    placed = _placed(scene, [row.position for row in rows], whole=whole)
    yield from placed[0]
    results = _results(rows)
    calls = {part["tool_call_id"] for row in rows for part in _calls(row)}
    previous: Message | None = None
    for row in rows:
        gap = _gap(scene, previous, row)
        if gap is not None:
            yield gap
        yield from _said(scene, row, results, calls)
        yield from placed[row.position]
        previous = row


def _placed(scene: Scene, positions: list[int], *, whole: bool) -> dict[int, list[Entry]]:
    """Return markers and ends by the position of the message they follow; 0 is the top."""
    placed: dict[int, list[Entry]] = defaultdict(list)
    late: list[tuple[int, Entry]] = [(each.position, each) for each in markers_of(scene)]
    ended = [turn for turn in reversed(scene.turns) if turn.status in _ENDS]
    late += [(turn.last_position or 0, _ended(turn)) for turn in ended]
    for position, entry in late:
        at = bisect_right(positions, position)
        if at:
            last = at == len(positions)
            if whole or not last or position == positions[-1]:
                placed[positions[at - 1]].append(entry)
        elif whole and not positions:
            placed[0].append(entry)
    return placed


def _ended(turn: Turn) -> Ended:
    state, text = _ENDS[Turn.Status(turn.status)]
    reason = turn.error if turn.status != Turn.Status.STOPPED else ""
    return Ended(f"turn-{turn.number}", state, f"{text}: {reason}" if reason else text)


def _gap(scene: Scene, previous: Message | None, row: Message) -> Gap | None:
    at = row.created_at.astimezone(scene.zone)
    if previous is None:
        text = f"{at:%a} {words.day(at)}"
    else:
        span = row.created_at - previous.created_at
        if span < GAP:
            return None
        text = f"{words.later(span)} · {at:%a} {words.day(at)} {words.clock(at)}"
    return Gap(f"gap-{row.position}", at.isoformat(), text)


def _said(
    scene: Scene, row: Message, results: dict[str, dict[str, Any]], calls: set[str]
) -> Iterator[Entry]:
    at = row.created_at.astimezone(scene.zone)
    memory = scene.coverage.of(row.position)
    tokens = words.tokens(row.tokens)
    for index, part in enumerate(row.payload["parts"]):
        key = f"m{row.position}-{index}"
        match part["part_kind"]:
            case "user-prompt":
                text = _prompt_text(part["content"])
                yield Said(key, "user", text, at.isoformat(), words.clock(at), tokens, memory)
            case "text" if part["content"].strip():
                text = part["content"]
                yield Said(key, "assistant", text, at.isoformat(), words.clock(at), tokens, memory)
            case "thinking" if part["content"].strip():
                yield Thought(key, part["content"], memory)
            case "tool-call":
                yield _tool(key, part, results.get(part["tool_call_id"]), memory)
            case "tool-return" | "retry-prompt" if part.get("tool_call_id") not in calls:
                yield _tool(key, None, part, memory)


def _prompt_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = [_piece(item) for item in content]
    return "\n".join(piece for piece in pieces if piece)


def _piece(item: Any) -> str:
    if isinstance(item, str):
        return item
    if item.get("kind") == "text":
        return str(item.get("content", ""))
    return (
        "" if item.get("kind") == "cache-point" else f"[{item.get('media_type') or 'attachment'}]"
    )


def _calls(row: Message) -> list[dict[str, Any]]:
    return [part for part in row.payload["parts"] if part["part_kind"] == "tool-call"]


def _results(rows: list[Message]) -> dict[str, dict[str, Any]]:
    return {
        part["tool_call_id"]: part
        for row in rows
        for part in row.payload["parts"]
        if part["part_kind"] in ("tool-return", "retry-prompt") and part.get("tool_call_id")
    }


def _tool(
    key: str, call: dict[str, Any] | None, result: dict[str, Any] | None, memory: str
) -> Tool:
    named = call or result or {}
    return Tool(
        key=key,
        tool=named.get("tool_name") or "tool",
        arguments=_text(call["args"]) if call else "",
        result=_text(result["content"])[:LONGEST_RESULT] if result else "",
        status=_status(result),
        memory=memory,
    )


def _status(result: dict[str, Any] | None) -> str:
    if result is None:
        return "running"
    if result["part_kind"] == "retry-prompt":
        return "refused"
    outcome = result.get("outcome", "success")
    return "done" if outcome == "success" else str(outcome)


def _text(value: Any) -> str:
    if value in (None, "", {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def reply_words(text: str) -> str:
    """Return what is announced when a reply is complete."""
    if len(text) <= 500:
        return f"Reply: {' '.join(text.split())}"
    first = words.first_words(text.split(". ")[0], 200)
    return f"{first}. Reply finished, {len(text.split())} words"
