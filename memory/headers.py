"""Tell from a file's own bytes what it is and how large it shows; nothing is decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/csv", "application/json"})
"""What a file of text may call itself; its bytes cannot tell these from each other."""

_PDF_SEARCHED = 1024
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Extent:
    """Hold how large media show: pixels of a picture, pages of a document; None is unknown."""

    width: int | None = None
    height: int | None = None
    pages: int | None = None


def sniff(data: bytes) -> str:
    """Return the media type that the bytes show, or nothing when they show none.

    Text that is valid UTF-8 is ``text/plain``, or ``application/json`` when it is an object or
    a list of JSON.
    """
    for marks, media_type in _MARKS:
        if all(data[at : at + len(mark)] == mark for at, mark in marks):
            return media_type
    if b"%PDF-" in data[:_PDF_SEARCHED]:
        return "application/pdf"
    return _text_type(data)


_MARKS: tuple[tuple[tuple[tuple[int, bytes], ...], str], ...] = (
    (((0, b"\x89PNG\r\n\x1a\n"),), "image/png"),
    (((0, b"\xff\xd8\xff"),), "image/jpeg"),
    (((0, b"GIF87a"),), "image/gif"),
    (((0, b"GIF89a"),), "image/gif"),
    (((0, b"RIFF"), (8, b"WEBP")), "image/webp"),
)


def measure(data: bytes) -> Extent:
    """Return how large the media in these bytes show; damaged headers leave it unknown."""
    reader = _READERS.get(sniff(data[:_PDF_SEARCHED]))
    if reader is None:
        return Extent()
    try:
        return reader(data)
    except (IndexError, ValueError):
        return Extent()


def _text_type(data: bytes) -> str:
    if b"\x00" in data:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and _is_json(text):
        return "application/json"
    return "text/plain"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _png(data: bytes) -> Extent:
    return _pixels(_number(data, 16, 4, "big"), _number(data, 20, 4, "big"))


def _gif(data: bytes) -> Extent:
    return _pixels(_number(data, 6, 2), _number(data, 8, 2))


def _webp(data: bytes) -> Extent:
    match data[12:16]:
        case b"VP8X":
            return _pixels(_number(data, 24, 3) + 1, _number(data, 27, 3) + 1)
        case b"VP8L":
            bits = _number(data, 21, 4)
            return _pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            return _pixels(_number(data, 26, 2) & 0x3FFF, _number(data, 28, 2) & 0x3FFF)
        case _:
            return Extent()


def _jpeg(data: bytes) -> Extent:
    for marker, at in _segments(data):
        if marker in _JPEG_SIZES:
            return _pixels(_number(data, at + 5, 2, "big"), _number(data, at + 3, 2, "big"))
    return Extent()


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield each marker of a JPEG with where its length stands, up to the picture itself."""
    at = 2
    while at + 1 < len(data):
        if data[at] != 0xFF:
            return
        marker = data[at + 1]
        at += 1 if marker == 0xFF else 2
        if marker == 0xFF or marker in _JPEG_BARE:
            continue
        if marker in (0xD9, 0xDA):
            return
        yield marker, at
        at += _number(data, at, 2, "big")


def _pdf(data: bytes) -> Extent:
    # Pages inside compressed streams are not seen: then the number is unknown, not 0.
    return Extent(pages=len(_PAGE.findall(data)) or None)


def _pixels(width: int, height: int) -> Extent:
    return Extent(width, height) if width and height else Extent()


def _number(data: bytes, at: int, length: int, order: str = "little") -> int:
    piece = data[at : at + length]
    if len(piece) < length:
        raise ValueError("The header ends early.")
    return int.from_bytes(piece, "big" if order == "big" else "little")


_READERS = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "application/pdf": _pdf,
}
