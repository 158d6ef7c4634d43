"""Write messages down as the Observer reads them.

Structure stands at the beginning of a line and nowhere else: a date header, or an entry's
number. Whatever people, tools and models wrote follows an entry's label or is indented,
so no text can pass for an entry, a date or a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from memory.engine.calls import told_once
from memory.engine.dates import spelled
from memory.engine.escape import clean, escape
from memory.engine.outline import outline
from memory.engine.redact import redact
from memory.engine.shorten import Tokenizer, condense_all, fits, shorten, truncate
from memory.engine.values import Message, MessageKind, Part, PartKind

__all__ = ["Tokenizer", "Transcript", "indented", "speaker_of", "transcript"]

RESULT_TOKENS = 5_000
CALL_TOKENS = 2_000
LABEL_TOKENS = 100
MESSAGE_TOKENS = 8_000

_SILENT = {
    PartKind.CALL: "[no arguments]",
    PartKind.RESULT: "[empty result]",
    PartKind.FAILURE: "[no reason given]",
    PartKind.ATTACHMENT: "unnamed",
}
_UNTOLD = frozenset({PartKind.THINKING, PartKind.GAP})
_LONGEST_NAME = 80
_LONGEST_GAP = 120
_NAMELESS = re.compile(r"[^\w.+/-]+")
_IMAGE = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp|tiff?|hei[cf]|avif)", re.IGNORECASE)
_UNKNOWN_MEDIA = frozenset({"", "application/octet-stream"})
_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class Transcript:
    """Hold what the Observer reads; ``numbers`` maps each printed number to a position.

    ``media`` holds what is to be shown besides, each with the length of the text it follows.
    ``images`` and ``files`` are the last numbers given to attachments.
    """

    text: str
    numbers: dict[int, int]
    media: tuple[tuple[int, str], ...] = ()
    images: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """Hold one entry; the time is printed between ``speaker`` and ``detail``."""

    speaker: str
    detail: str
    text: str
    media: str = ""


def no_media(part: Part) -> bool:
    """Return that no attachment is shown, whatever it is."""
    return False


def transcript(
    messages: Sequence[Message],
    *,
    tz: tzinfo,
    tokenizer: Tokenizer,
    first_number: int = 1,
    images: int = 0,
    files: int = 0,
    attachments: Callable[[Part], bool] = no_media,
) -> Transcript:
    """Return messages as dated, numbered entries.

    A message without anything to read (thinking only, say) has no entry and no number. An
    attachment has a placeholder, numbered on from ``images`` or ``files``; where
    ``attachments`` says that it may be shown, its media is put below its entry.
    """
    writer = _Writer(tz, tokenizer, attachments, first_number, images, files)
    for message, parts in told_once(messages):
        writer.add(message, parts)
    return Transcript(
        "\n".join(writer.lines), writer.numbers, tuple(writer.media), writer.images, writer.files
    )


def indented(text: str, indent: str = "  ") -> str:
    """Return the text with every line but the first indented; blank lines stay blank."""
    return re.sub(r"\n(?=[^\n])", f"\n{indent}", text)


def speaker_of(part: Part, message: Message) -> str:
    """Return whose words a part holds, as it is printed: one label that no name can forge."""
    match part.kind:
        case PartKind.CALL:
            return f"Tool call {_name(part.tool)}"
        case PartKind.RESULT:
            return f"Tool result {_name(part.tool)}"
        case PartKind.FAILURE:
            return f"Tool error {_name(part.tool)}"
        case PartKind.ATTACHMENT if part.tool:
            return f"Tool result {_name(part.tool)}"
        case PartKind.ATTACHMENT:
            return "User" if message.kind is MessageKind.REQUEST else "Assistant"
        case PartKind.USER:
            return "User"
        case _:
            return "Assistant"


@dataclass(slots=True)
class _Writer:
    """Write entries one below the other, counting messages and attachments."""

    tz: tzinfo
    tokenizer: Tokenizer
    shown: Callable[[Part], bool]
    next_number: int
    images: int
    files: int
    lines: list[str] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    media: list[tuple[int, str]] = field(default_factory=list)
    earlier: datetime | None = None
    length: int = -1

    def add(self, message: Message, parts: Sequence[Part]) -> None:
        for part in parts:
            if part.kind is PartKind.GAP and part.text.strip():
                self._write(_gap(part))
        entries = self._entries(message, parts)
        if entries:
            self.numbers[self.next_number] = message.position
            self._write_all(entries, message.at.astimezone(self.tz))
            self.next_number += 1

    def _write_all(self, entries: Sequence[_Entry], at: datetime) -> None:
        new_day = self.earlier is None or at.date() != self.earlier.date()
        clock = f"{at:%H:%M}"
        shown = new_day or self.earlier is None or clock != f"{self.earlier:%H:%M}"
        if new_day:
            self._write(f"Date: {spelled(at.date())}")
        for entry in entries:
            time = f" ({clock})" if shown else ""
            label = f"[#{self.next_number}] {entry.speaker}{time}{entry.detail}"
            self._write(f"{label}: {indented(escape(entry.text))}")
            if entry.media:
                self.media.append((self.length, entry.media))
            shown = False
        self.earlier = at

    def _write(self, line: str) -> None:
        self.lines.append(line)
        self.length += len(line) + 1

    def _entries(self, message: Message, parts: Sequence[Part]) -> list[_Entry]:
        entries = list(self._told(message, parts))
        texts = condense_all([entry.text for entry in entries], MESSAGE_TOKENS, self.tokenizer)
        return [
            _Entry(entry.speaker, entry.detail, text, entry.media)
            for entry, text in zip(entries, texts, strict=True)
        ]

    def _told(self, message: Message, parts: Sequence[Part]) -> Iterator[_Entry]:
        for part in parts:
            if part.kind in _UNTOLD:
                continue
            text = clean(part.text).strip("\n").rstrip() or _SILENT.get(part.kind, "")
            if not text:
                continue
            media = ""
            if part.kind is PartKind.ATTACHMENT:
                text = self._placeholder(part, text)
                media = part.media if part.media and self.shown(part) else ""
            yield _Entry(
                speaker_of(part, message), _detail(part), _sized(part, text, self.tokenizer), media
            )

    def _placeholder(self, part: Part, label: str) -> str:
        name = truncate(" ".join(label.split()), LABEL_TOKENS, self.tokenizer)
        name = name.translate(_BRACKETS)
        if _is_image(part):
            self.images += 1
            return f"[Image #{self.images}: {name}]"
        self.files += 1
        return f"[File #{self.files}: {name}]"


def _sized(part: Part, text: str, tokenizer: Tokenizer) -> str:
    if part.kind is PartKind.CALL:
        text = redact(text)
        if fits(text, CALL_TOKENS, tokenizer):
            return text
        return truncate(clean(outline(text)) or text, CALL_TOKENS, tokenizer)
    if part.kind in (PartKind.RESULT, PartKind.FAILURE):
        return shorten(redact(text), RESULT_TOKENS, tokenizer)
    return text


def _gap(part: Part) -> str:
    # In round brackets nothing a client stored here can pass for an entry's number.
    text = " ".join(clean(part.text).split()).translate(_BRACKETS)
    return f"[{escape(text[:_LONGEST_GAP])}]"


def _is_image(part: Part) -> bool:
    if part.media_type in _UNKNOWN_MEDIA:
        return _IMAGE.search(part.text[-6:]) is not None
    return part.media_type.startswith("image/")


def _detail(part: Part) -> str:
    if part.kind is not PartKind.ATTACHMENT:
        return ""
    return f" attachment {_name(part.media_type)}"


def _name(text: str) -> str:
    # Names come from models and clients too: one word, so that they cannot forge a label.
    return _NAMELESS.sub("_", text)[:_LONGEST_NAME] or "unknown"
