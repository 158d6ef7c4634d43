"""Write messages down as the Observer reads them.

Structure stands at the beginning of a line and nowhere else: a date header, or an entry's
number. Whatever people, tools and models wrote follows an entry's label or is indented,
so no text can pass for an entry, a date or a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from memory.engine.dates import spelled
from memory.engine.escape import clean, escape
from memory.engine.shorten import Tokenizer, condense_all, truncate
from memory.engine.values import Message, MessageKind, Part, PartKind

__all__ = ["Tokenizer", "Transcript", "indented", "transcript"]

RESULT_TOKENS = 5_000
CALL_TOKENS = 2_000
LABEL_TOKENS = 100
MESSAGE_TOKENS = 8_000

_LIMITS = {
    PartKind.CALL: CALL_TOKENS,
    PartKind.RESULT: RESULT_TOKENS,
    PartKind.FAILURE: RESULT_TOKENS,
    PartKind.ATTACHMENT: LABEL_TOKENS,
}
_SILENT = {
    PartKind.CALL: "[no arguments]",
    PartKind.RESULT: "[empty result]",
    PartKind.FAILURE: "[no reason given]",
    PartKind.ATTACHMENT: "[unnamed]",
}
_LONGEST_NAME = 80
_NAMELESS = re.compile(r"[^\w.+/-]+")


@dataclass(frozen=True, slots=True)
class Transcript:
    """Hold what the Observer reads; ``numbers`` maps each printed number to a position."""

    text: str
    numbers: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Hold one entry; the time is printed between ``speaker`` and ``detail``."""

    speaker: str
    detail: str
    text: str


def transcript(
    messages: Sequence[Message], *, tz: tzinfo, tokenizer: Tokenizer, first_number: int = 1
) -> Transcript:
    """Return messages as dated, numbered entries.

    A message without anything to read (thinking only, say) has no entry and no number.
    """
    numbers: dict[int, int] = {}
    lines: list[str] = []
    earlier: datetime | None = None
    for message in messages:
        entries = _entries(message, tokenizer)
        if not entries:
            continue
        number = first_number + len(numbers)
        numbers[number] = message.position
        at = message.at.astimezone(tz)
        lines += _headed(entries, number, at, earlier)
        earlier = at
    return Transcript("\n".join(lines), numbers)


def indented(text: str, indent: str = "  ") -> str:
    """Return the text with every line but the first indented; blank lines stay blank."""
    return re.sub(r"\n(?=[^\n])", f"\n{indent}", text)


def _headed(
    entries: Sequence[_Entry], number: int, at: datetime, earlier: datetime | None
) -> list[str]:
    new_day = earlier is None or at.date() != earlier.date()
    clock = f"{at:%H:%M}"
    shown = new_day or earlier is None or clock != f"{earlier:%H:%M}"
    lines = [f"Date: {spelled(at.date())}"] if new_day else []
    for entry in entries:
        label = f"[#{number}] {entry.speaker}{f' ({clock})' if shown else ''}{entry.detail}"
        lines.append(f"{label}: {indented(escape(entry.text))}")
        shown = False
    return lines


def _entries(message: Message, tokenizer: Tokenizer) -> list[_Entry]:
    found = [_entry(part, message, tokenizer) for part in message.parts]
    entries = [entry for entry in found if entry is not None]
    texts = condense_all([entry.text for entry in entries], MESSAGE_TOKENS, tokenizer)
    return [replace(entry, text=text) for entry, text in zip(entries, texts, strict=True)]


def _entry(part: Part, message: Message, tokenizer: Tokenizer) -> _Entry | None:
    if part.kind is PartKind.THINKING:
        return None
    text = clean(part.text).strip("\n").rstrip() or _SILENT.get(part.kind, "")
    if not text:
        return None
    if part.kind in _LIMITS:
        text = truncate(text, _LIMITS[part.kind], tokenizer)
    return _Entry(_speaker(part, message), _detail(part), text)


def _speaker(part: Part, message: Message) -> str:
    match part.kind:
        case PartKind.CALL:
            return f"Tool call {_name(part.tool)}"
        case PartKind.RESULT:
            return f"Tool result {_name(part.tool)}"
        case PartKind.FAILURE:
            return f"Tool error {_name(part.tool)}"
        case PartKind.ATTACHMENT:
            return "User" if message.kind is MessageKind.REQUEST else "Assistant"
        case PartKind.USER:
            return "User"
        case _:
            return "Assistant"


def _detail(part: Part) -> str:
    if part.kind is not PartKind.ATTACHMENT:
        return ""
    return f" attachment {_name(part.media_type)}"


def _name(text: str) -> str:
    # Names come from models and clients too: one word, so that they cannot forge a label.
    return _NAMELESS.sub("_", text)[:_LONGEST_NAME] or "unknown"
