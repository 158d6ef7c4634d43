"""Make the rows and the bar of a request, with what changed and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agents import words
from agents.secrets import masked_text
from agents.services.told import TOOLS
from agents.studio.context.differ import NAMES, UNCOMPARED, Change, Prefix, change
from agents.studio.context.inspected import (
    MEMORY,
    MESSAGE,
    ORDER,
    OTHERS,
    PROMPT,
    REMINDER,
    Inspected,
    Part,
    Said,
)
from memory.services.request import BODY, LEFT_OUT
from memory.tokens import BY_LINE

LARGE_SHARE = 0.25
LARGE_TOKENS = 500
ALIKE_TOKENS = 60
MOST_SAID = 60

#: Where the text of each kind of block comes from; it gives the hue.
HUES = {
    "instructions": "config",
    TOOLS: "code",
    MEMORY: "memory",
    OTHERS: "memory",
    REMINDER: "memory",
    MESSAGE: "messages",
    PROMPT: "draft",
    LEFT_OUT: "left-out",
}
SHORT = {
    "instructions": "sys",
    TOOLS: "tools",
    MEMORY: "observations",
    OTHERS: "others",
    REMINDER: "reminder",
    MESSAGE: "messages",
    PROMPT: "new",
    LEFT_OUT: "left out",
}


@dataclass(frozen=True)
class Message:
    """Show one message of a request."""

    position: int
    at: datetime
    clock: str
    who: str
    tokens: int
    share: str
    text: str
    flags: tuple[str, ...] = ()
    draft: bool = False


@dataclass(frozen=True)
class Tool:
    """Show the definition of one tool."""

    name: str
    tokens: int
    about: str
    schema: str


@dataclass(frozen=True)
class Row:
    """Show one block. ``why`` says why an inactive one is empty; ``of_all`` how much it holds."""

    key: str
    name: str
    source: str
    hue: str
    tokens: int
    share: str
    preview: str = ""
    of_all: str = ""
    facts: str = ""
    change: Change = UNCOMPARED
    why: str = ""
    text: str = ""
    gone: bool = False
    tools: tuple[Tool, ...] = ()
    messages: tuple[Message, ...] = ()
    more: int = 0
    flags: tuple[str, ...] = ()
    open: bool = False

    @property
    def count(self) -> str:
        """Return its tokens in digits."""
        return f"{self.tokens:,}" if self.active else "–"

    @property
    def active(self) -> bool:
        """Tell whether the request holds it."""
        return not self.why


@dataclass(frozen=True)
class Segment:
    """Show one part of the bar; places are percentages as SVG takes them."""

    key: str
    hue: str
    start: str
    width: str
    label: str = ""


@dataclass(frozen=True)
class Bar:
    """Show a request in proportion, and how much of it is as before."""

    segments: tuple[Segment, ...]
    spoken: str
    kept: str = ""
    window: str = ""


def rows_of(
    request: Inspected,
    zone: ZoneInfo,
    *,
    before: Inspected | None = None,
    stored: int = 0,
    reasons: dict[str, str] | None = None,
    opened: Sequence[str] = (),
) -> list[Row]:
    """Return a row for each kind of block, inactive ones with the reason."""
    doubles = _doubles(request)
    rows = []
    for kind in ORDER:
        parts = request.of(kind)
        if parts:
            row = _row(request, kind, parts, zone, doubles)
            if kind == MESSAGE and stored:
                row = replace(row, of_all=f"{_held(parts)} of {stored}")
            if before is not None and kind != LEFT_OUT:
                row = replace(row, change=change(kind, before, request))
            rows.append(replace(row, open=kind in opened))
        elif reasons and kind in reasons:
            rows.append(_inactive(kind, reasons[kind]))
    return rows


def _inactive(kind: str, why: str) -> Row:
    return Row(kind, NAMES[kind], "", HUES[kind], 0, "–", why=why)


def _held(parts: Sequence[Part]) -> int:
    return sum(1 + (part.last or 0) - (part.first or 0) for part in parts if part.of_messages)


def _row(
    request: Inspected,
    kind: str,
    parts: Sequence[Part],
    zone: ZoneInfo,
    doubles: dict[int, int],
) -> Row:
    tokens = sum(part.tokens for part in parts)
    row = Row(
        key=kind,
        name=NAMES[kind],
        source=_source(parts),
        hue=HUES[kind],
        tokens=tokens,
        share="–" if kind == LEFT_OUT else share(tokens, request.total),
    )
    if parts[0].of_messages:
        return _with_messages(row, request, parts, zone, doubles)
    text = parts[0].text
    if text is None:
        gone = "The text is not kept any more; its size and its hash are."
        return replace(row, gone=True, preview=gone, facts=f"hash {parts[0].hash[:12]}")
    text = masked_text(text)
    row = replace(row, text=text, preview=_preview(kind, text))
    if kind == TOOLS:
        tools = tuple(_tools(text))
        names = ", ".join(tool.name for tool in tools)
        return replace(row, tools=tools, of_all=str(len(tools)), preview=names)
    return replace(row, facts=_facts(kind, text))


def share(tokens: int, total: int) -> str:
    """Return a share in whole percent."""
    return f"{round(100 * tokens / total)} %" if total else "–"


def _source(parts: Sequence[Part]) -> str:
    return parts[0].source.partition(", without memory")[0]


def _preview(kind: str, text: str) -> str:
    body = text.partition(BODY)[2] if kind == MEMORY else text
    lines = (line.strip() for line in (body or text).splitlines())
    meant = (line for line in lines if line and not line.startswith(("<", "Date:")))
    return words.first_words(next(meant, text), 140)


def _facts(kind: str, text: str) -> str:
    if kind == MEMORY and BODY in text:
        preamble, body = text.split(BODY, 1)
        lines = [line for line in body.splitlines() if line.lstrip().startswith("*")]
        days = sum(line.startswith("Date:") for line in body.splitlines())
        return (
            f"preamble {BY_LINE.count(preamble)} tokens · {len(lines)} lines of {days} days · "
            "dates told relative to the day of the turn"
        )
    if kind == REMINDER:
        told = [tag for tag in ("current-task", "suggested-response") if f"<{tag}>" in text]
        named = " and ".join(tag.replace("-", " ") for tag in told) or "no hints"
        return f"{named}, and how to go on"
    return ""


def _tools(text: str) -> Iterator[Tool]:
    try:
        definitions: list[dict[str, Any]] = json.loads(text)
    except ValueError:
        return
    for each in definitions:
        yield Tool(
            name=each.get("name", ""),
            tokens=BY_LINE.count(json.dumps(each)),
            about=each.get("description") or "",
            schema=json.dumps(each.get("parameters"), indent=2, ensure_ascii=False),
        )


def _with_messages(
    row: Row,
    request: Inspected,
    parts: Sequence[Part],
    zone: ZoneInfo,
    doubles: dict[int, int],
) -> Row:
    said = [each for part in parts for each in part.said]
    shown = said if len(said) <= MOST_SAID else [*said[:5], *said[5 - MOST_SAID :]]
    flags = tuple(flag for each in said for flag in _flags(each, request, doubles))
    if row.key == PROMPT and len(said) == 1 and said[0].draft:
        row = replace(row, name="Your draft", source="composer")
    return replace(
        row,
        messages=tuple(_message(each, request, zone, doubles) for each in shown),
        more=len(said) - len(shown),
        of_all=str(_held(parts)) if _held(parts) > 1 else "",
        preview=words.first_words(masked_text(said[-1].text), 140) if said else "",
        flags=flags[:3],
    )


_WHO = {"request": "user", "response": "assistant", PROMPT: "user"}


def _message(said: Said, request: Inspected, zone: ZoneInfo, doubles: dict[int, int]) -> Message:
    return Message(
        position=said.position,
        at=said.at,
        clock=words.clock(said.at.astimezone(zone)),
        who=_WHO.get(said.kind, said.kind),
        tokens=said.tokens,
        share=share(said.tokens, request.total),
        text=words.first_words(masked_text(said.text), 200)
        or ("(nothing yet)" if said.draft else ""),
        flags=tuple(_flags(said, request, doubles)),
        draft=said.draft,
    )


def _flags(said: Said, request: Inspected, doubles: dict[int, int]) -> Iterator[str]:
    if said not in request.said:
        return
    if said.tokens >= LARGE_TOKENS and said.tokens > LARGE_SHARE * request.total:
        yield f"Message {said.position} alone is {share(said.tokens, request.total)} of the request"
    if said.position in doubles:
        yield f"Message {said.position} repeats message {doubles[said.position]}"


def _doubles(request: Inspected) -> dict[int, int]:
    """Return by position the earlier message that says the same, where it costs something."""
    first: dict[tuple[str, int], int] = {}
    doubles = {}
    for said in request.said:
        if said.tokens < ALIKE_TOKENS or said.erased or not said.text:
            continue
        same = first.setdefault((said.text, said.tokens), said.position)
        if same != said.position:
            doubles[said.position] = same
    return doubles


def bar_of(request: Inspected, rows: Sequence[Row], prefix: Prefix | None = None) -> Bar:
    """Return the bar of a request; what is left out of it stands behind its end."""
    active = [row for row in rows if row.active and row.tokens]
    active.sort(key=lambda row: row.key == LEFT_OUT)
    whole = max(sum(row.tokens for row in active), 1)
    over = request.window is not None and request.total > request.window
    segments, start = [], 0
    for row in active:
        width = 100 * row.tokens / whole
        label = f"{SHORT[row.key]} {words.tokens(row.tokens)}" if width >= 9 else ""
        segments.append(
            Segment(
                row.key,
                row.hue,
                words.percent(start, whole),
                words.percent(row.tokens, whole),
                label,
            )
        )
        start += row.tokens
    parts = ", ".join(f"{row.name.lower()} {row.share}" for row in active)
    spoken = f"{request.total} tokens: {parts}." if active else "Nothing is sent."
    kept = words.percent(prefix.tokens, whole) if prefix is not None and prefix.tokens else ""
    window = words.percent(request.window, whole) if over and request.window else ""
    return Bar(tuple(segments), spoken, kept, window)
