"""Read SQLite's binary JSON, which a library older than the file cannot.

Format: sqlite.org/jsonb.html. An element is a header, whose low half byte is its type and
whose high half its size or the number of bytes that hold the size, and a payload.
"""

from __future__ import annotations

import json
from typing import Any

_CONSTANTS = {0: None, 1: True, 2: False}
_NUMBERS = {3, 4, 5, 6}
_PLAIN, _ESCAPED, _ESCAPED5, _RAW, _ARRAY, _OBJECT = 7, 8, 9, 10, 11, 12
_SIZES = {12: 1, 13: 2, 14: 4, 15: 8}


def loads(blob: bytes) -> Any:
    """Return the value a blob holds. Raises ValueError when it holds none."""
    try:
        value, end = _element(blob, 0)
    except (IndexError, RecursionError) as error:
        raise ValueError("This is no binary JSON: it ends early or is too deep.") from error
    if end != len(blob):
        raise ValueError("This is no binary JSON: something follows the value.")
    return value


def _element(blob: bytes, at: int) -> tuple[Any, int]:
    kind, size = blob[at] & 0x0F, blob[at] >> 4
    start = at + 1
    if size in _SIZES:
        start, size = (
            start + _SIZES[size],
            int.from_bytes(blob[start : start + _SIZES[size]], "big"),
        )
    end = start + size
    if end > len(blob):
        raise IndexError
    return _value(kind, blob, start, end), end


def _value(kind: int, blob: bytes, start: int, end: int) -> Any:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind in (_ARRAY, _OBJECT):
        items = _items(blob, start, end)
        return items if kind == _ARRAY else dict(zip(items[::2], items[1::2], strict=True))
    text = blob[start:end].decode()
    if kind in _NUMBERS:
        return json.loads(text)
    if kind in (_ESCAPED, _ESCAPED5):
        return json.loads(f'"{text}"', strict=False)
    if kind in (_PLAIN, _RAW):
        return text
    raise ValueError(f"This is no binary JSON: nothing is of type {kind}.")


def _items(blob: bytes, start: int, end: int) -> list[Any]:
    items = []
    while start < end:
        item, start = _element(blob, start)
        items.append(item)
    return items
