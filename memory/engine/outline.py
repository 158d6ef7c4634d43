"""Outline a large JSON value: what it holds, where, and how much of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

DEEPEST = 5
WIDEST = 20
MOST_ENTRIES = 100
LONGEST_STRING = 160
LONGEST_PATH = 160

Json = dict[str, object] | list[object]


def outline(text: str) -> str:
    """Return a JSON text as one line per value, each with its path; nothing when it is no JSON.

    What lies too deep, or too far along, is counted and left out.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict | list) or not value:
        return ""
    lines: list[str] = []
    for line in _entries("", value, 0):
        if len(lines) == MOST_ENTRIES:
            return "\n".join([*lines, "… more entries left out"])
        lines.append(line)
    return "\n".join(lines)


def _entries(path: str, value: object, depth: int) -> Iterator[str]:
    if not isinstance(value, dict | list) or not value:
        yield f"{_shortened(path)}: {_scalar(value)}"
        return
    if depth == DEEPEST:
        yield f"{_shortened(path)}: {_size(value)}"
        return
    if isinstance(value, list):
        yield f"{_shortened(path) or 'all'}: {_size(value)}"
    for name, item in islice(_inner(path, value), WIDEST):
        yield from _entries(name, item, depth + 1)
    if len(value) > WIDEST:
        yield f"{_shortened(path) or 'all'}: … {len(value) - WIDEST} more"


def _inner(path: str, value: Json) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value))
    else:
        yield from ((f"{path}.{key}" if path else key, item) for key, item in value.items())


def _size(value: Json) -> str:
    if isinstance(value, dict):
        return f"object of {len(value)}"
    return f"list of {len(value)}"


def _scalar(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_STRING:
        return text
    return f"{text[:LONGEST_STRING]}… ({len(text)} characters)"


def _shortened(path: str) -> str:
    path = path[: LONGEST_PATH + 1].replace("\n", " ")
    return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}…"
