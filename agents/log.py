"""Make the entries of a conversation's log: messages, tools, gaps, ends of turns, markers."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.urls import reverse

from agents import words
from agents.branches import Branch, branches_of
from agents.entries import Ended, File, Gap, Said, Thought, Tool
from agents.footers import Footer, footers_of
from agents.markers import Marker
from agents.models import Turn
from agents.omitted import Omitted, omitted_in
from agents.page import LONGEST, WINDOW, Scene
from agents.people import Forked, markers_of
from agents.services.attach import IMAGE_TYPES
from memory import media
from memory.messages import GAP as GAP_MARKER
from memory.models import Message
from memory.services.blank import MARK as ERASED_MARK
from memory.stored import REFERENCES

GAP = timedelta(minutes=10)
LONGEST_RESULT = 20_000


Entry = Said | Tool | Thought | Gap | Ended | Omitted | Forked | Marker

_ENDS = {
    Turn.Status.STOPPED: ("interrupted", "Stopped by you"),
    Turn.Status.INTERRUPTED: ("interrupted", "Interrupted"),
    Turn.Status.FAILED: ("failed", "✕ The answer failed"),
}


@dataclass(frozen=True)
class Log:
    """Hold a window of a log. ``mark`` changes when what memory covers does.

    ``newer_from`` is where the next one begins, some of this one in it, when they do not meet.
    """

    entries: tuple[Entry, ...]
    first: int
    last: int
    mark: str
    earlier_from: int
    newer_from: int = 0
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
    is_cut = before is not None and len(rows) > LONGEST
    rows = rows[:LONGEST] if is_cut else rows
    short = len(scene.messages) < WINDOW and before is None
    return Log(
        entries=tuple(_entries(scene, rows, whole=before is None)),
        first=scene.first,
        last=scene.thread.last_position,
        mark=f"{scene.coverage.covered}-{scene.coverage.buffered}",
        earlier_from=0 if short else scene.earlier_start(),
        newer_from=rows[-WINDOW].position if is_cut else 0,
        hint=hint,
    )


def _entries(scene: Scene, rows: list[Message], *, whole: bool) -> Iterator[Entry]:
    placed = _placed(scene, [row.position for row in rows], whole=whole)
    yield from placed[0]
    context = _Context(scene, rows)
    previous: Message | None = None
    for row in rows:
        gap = _gap(scene, previous, row)
        if gap is not None:
            yield gap
        for index, entry in enumerate(_said(context, row)):
            yield entry if index else replace(entry, opens=True)
        yield from placed[row.position]
        previous = row


class _Context:
    """Hold what the entries of a message take from the others around it."""

    def __init__(self, scene: Scene, rows: list[Message]) -> None:
        self.scene = scene
        self.rows = rows
        self.results = _results(rows)
        self.calls = {part["tool_call_id"] for row in rows for part in _calls(row)}

    @cached_property
    def branches(self) -> dict[int, Branch]:
        return branches_of(self.scene, [row.position for row in self.rows])

    @cached_property
    def footers(self) -> dict[int, Footer]:
        return footers_of(self.scene)

    @cached_property
    def turns(self) -> dict[int | None, int]:
        """Return the turns that can be sent anew, by the position of their prompt."""
        return {turn.first_position: turn.number for turn in self.scene.turns}


def _placed(scene: Scene, positions: list[int], *, whole: bool) -> dict[int, list[Entry]]:
    """Return markers and ends by the position of the message they follow; 0 is the top."""
    placed: dict[int, list[Entry]] = defaultdict(list)
    late: list[tuple[int, Entry]] = [
        (each.position, each) for each in (*omitted_in(scene), *markers_of(scene))
    ]
    ended = [turn for turn in reversed(scene.turns) if turn.status in _ENDS]
    late += [(turn.last_position or 0, _ended(turn)) for turn in ended]
    for position, entry in late:
        at = bisect_right(positions, position)
        if at:
            last = at == len(positions)
            if whole or not last or position == positions[-1]:
                placed[positions[at - 1]].append(entry)
        elif positions[0] <= 1 if positions else whole:
            placed[0].append(entry)
    return placed


def _ended(turn: Turn) -> Ended:
    state, text = _ENDS[Turn.Status(turn.status)]
    reason = turn.error if turn.status != Turn.Status.STOPPED else ""
    return Ended(f"turn-{turn.number}", state, f"{text}: {reason}" if reason else text)


def _gap(scene: Scene, previous: Message | None, row: Message) -> Gap | None:
    at = row.created_at.astimezone(scene.zone)
    if marker := _marker(row):
        text = marker
    elif previous is None:
        text = f"{at:%a} {words.day(at)}"
    else:
        span = row.created_at - previous.created_at
        if span < GAP:
            return None
        text = f"{words.later(span)} · {at:%a} {words.day(at)} {words.clock(at)}"
    return Gap(f"gap-{row.position}", at.isoformat(), text)


def _marker(row: Message) -> str:
    """Return the gap marker a message was stored with, or nothing."""
    noted = (row.payload.get("metadata") or {}).get(GAP_MARKER)
    return noted if isinstance(noted, str) else ""


def _is_erased(row: Message) -> bool:
    return ERASED_MARK.items() <= (row.payload.get("metadata") or {}).items()


def _said(context: _Context, row: Message) -> Iterator[Said | Tool | Thought]:
    memory = context.scene.coverage.of(row.position)
    files, parts = _files(row), row.payload["parts"]
    last = max((i for i, part in enumerate(parts) if part["part_kind"] == "text"), default=-1)
    for index, part in enumerate(parts):
        key = f"m{row.position}-{index}"
        match part["part_kind"]:
            case "user-prompt" if index or not _marker(row):
                yield _asked(context, row, key, _prompt_text(part["content"]), files[index])
            case "text" if part["content"].strip():
                said = _spoken(context.scene, row, key, "assistant", part["content"])
                footer = context.footers.get(row.position)
                yield replace(said, footer=footer) if index == last else said
            case "file":
                yield replace(_spoken(context.scene, row, key, "assistant", ""), files=files[index])
            case "thinking" if part["content"].strip():
                yield Thought(key, row.position, part["content"], memory)
            case "tool-call":
                answer = context.results.get(part["tool_call_id"])
                yield _tool(key, row.position, part, answer, memory)
            case "tool-return" | "retry-prompt" if part.get("tool_call_id") not in context.calls:
                yield _tool(key, row.position, None, (part, files[index]), memory)


def _asked(context: _Context, row: Message, key: str, text: str, files: tuple[File, ...]) -> Said:
    said = _spoken(context.scene, row, key, "user", text)
    turn = context.turns.get(row.position, 0)
    return replace(said, files=files, turn=turn, branch=context.branches.get(row.position))


def _spoken(scene: Scene, row: Message, key: str, by: str, text: str) -> Said:
    at = row.created_at.astimezone(scene.zone)
    return Said(
        key=key,
        position=row.position,
        by=by,
        text=text,
        at=at.isoformat(),
        clock=words.clock(at),
        tokens=words.tokens(row.tokens),
        memory=scene.coverage.of(row.position),
        erased=_is_erased(row),
        thread=str(row.thread_id),
    )


def _files(row: Message) -> dict[int, tuple[File, ...]]:
    """Return the files of a message by the number of the part they belong to."""
    files: dict[int, tuple[File, ...]] = defaultdict(tuple)
    for number, listed in enumerate(row.payload.get(REFERENCES, ())):
        files[listed["at"][0]] += (_file(row, number, listed),)
    return files


def _file(row: Message, number: int, listed: dict[str, Any]) -> File:
    name, media_type = named(row.payload, listed)
    link = reverse("file", args=(row.thread_id, row.position, number))
    return File(
        name=name,
        size=words.filesize(listed["size"]),
        link=link if media.exists(listed["hash"]) else "",
        is_picture=media_type in IMAGE_TYPES,
        width=listed.get("width"),
        height=listed.get("height"),
    )


def named(payload: dict[str, Any], listed: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the media type of a file that a message lists."""
    index, *way = listed["at"]
    stub = payload["parts"][index]["content"]
    for step in way:
        stub = stub[step]
    return str(stub.get("identifier") or "file"), str(stub.get("media_type") or "")


def _prompt_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = [_piece(item) for item in content]
    return "\n".join(piece for piece in pieces if piece)


def _piece(item: Any) -> str:
    if isinstance(item, str):
        return item
    match item.get("kind"):
        case "text" | "text-content":
            return str(item.get("content", ""))
        case "cache-point":
            return ""
        case "binary" if not item.get("data"):
            return ""  # It is shown below the text.
        case _:
            return f"[{item.get('media_type') or 'attachment'}]"


def _calls(row: Message) -> list[dict[str, Any]]:
    return [part for part in row.payload["parts"] if part["part_kind"] == "tool-call"]


_Result = tuple[dict[str, Any], tuple[File, ...]]


def _results(rows: list[Message]) -> dict[str, _Result]:
    """Return what tools returned, and the files with it, by the id of the call."""
    return {
        part["tool_call_id"]: (part, files[index])
        for row in rows
        for files in (_files(row),)
        for index, part in enumerate(row.payload["parts"])
        if part["part_kind"] in ("tool-return", "retry-prompt") and part.get("tool_call_id")
    }


def _tool(
    key: str,
    position: int,
    call: dict[str, Any] | None,
    answer: _Result | None,
    memory: str,
) -> Tool:
    result, files = answer or (None, ())
    told = call or result or {}
    return Tool(
        key=key,
        position=position,
        tool=told.get("tool_name") or "tool",
        arguments=_text(call["args"]) if call else "",
        result=_text(_without_bytes(result["content"]))[:LONGEST_RESULT] if result else "",
        status=_status(result),
        memory=memory,
        files=files,
    )


def _without_bytes(value: Any) -> Any:
    """Return a tool's result with the names of its files in their places."""
    if isinstance(value, list):
        return [_without_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "binary" and "media_type" in value:
        return f"[{value.get('identifier') or value['media_type']}]"
    return {key: _without_bytes(item) for key, item in value.items()}


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
