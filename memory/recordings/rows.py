"""Take values out of JSON, and say in plain words what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

Row = dict[str, Any]


class Wrong(Exception):
    """Say what is wrong; whoever knows the place adds it."""


@contextmanager
def within(place: str) -> Iterator[None]:
    """Name the place in front of what is wrong there."""
    try:
        yield
    except Wrong as error:
        raise Wrong(f"{place}: {error}") from error


def parsed(text: str) -> Any:
    """Return the value of JSON text; raises json.JSONDecodeError or Wrong."""
    try:
        # Lenient about raw control characters only: they are text that somebody sent.
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise Wrong(f"the JSON is beyond what can be read: {error}") from error


def decoded(raw: bytes) -> str:
    """Return UTF-8 bytes as text, without a byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Wrong(f"is not UTF-8 text (byte {error.start + 1})") from error


def as_object(value: object, what: str) -> Row:
    """Return the value when it is a JSON object."""
    if not isinstance(value, dict):
        raise Wrong(f"{what} is {_shape(value)}; expected an object")
    return value


def list_of(row: Row, key: str, *, optional: bool = False) -> list[Any]:
    """Return the list under a key; an optional one that is missing is empty."""
    value = row.get(key, []) if optional else present(row, key)
    if not isinstance(value, list):
        raise Wrong(f'"{key}" is {_shape(value)}; expected a list')
    return value


def text_of(row: Row, key: str) -> str:
    """Return the text under a key, which may be empty."""
    value = present(row, key)
    if not isinstance(value, str):
        raise Wrong(f'"{key}" is {_shape(value)}; expected text')
    return value


def name_of(row: Row, key: str) -> str:
    """Return the text under a key, which must not be blank."""
    value = text_of(row, key)
    if not value.strip():
        raise Wrong(f'"{key}" is empty; expected some text')
    return value


def plain_of(row: Row, key: str) -> str:
    """Return text or a number under a key as text; what is missing or null is empty."""
    value = row.get(key)
    return "" if value is None else str(value)


def present(row: Row, key: str) -> Any:
    """Return what is under a key; null is a value."""
    if key not in row:
        raise Wrong(f'"{key}" is missing')
    value = row[key]
    try:
        # What JSON can spell and no database takes: half a character, NaN, 1e999.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise Wrong(f'"{key}" holds half of a surrogate pair, which is not text') from error
    except (ValueError, RecursionError) as error:
        raise Wrong(f'"{key}" holds what is not JSON: {error}') from error
    return value


def only(row: Row, known: Iterable[str], what: str) -> None:
    """Refuse keys that would be lost because nothing reads them."""
    if unknown := sorted(row.keys() - set(known)):
        raise Wrong(f'{what} has no "{unknown[0]}"; it takes {", ".join(sorted(known))}')


def request(text: str, at: datetime) -> ModelRequest:
    """Return what a user says as a message."""
    return ModelRequest([UserPromptPart(text, timestamp=at)], timestamp=at)


def response(text: str, calls: list[ToolCallPart], at: datetime) -> ModelResponse:
    """Return what an assistant says and calls as a message; text may be empty."""
    said = [TextPart(text)] if text or not calls else []
    return ModelResponse([*said, *calls], timestamp=at)


def _shape(value: object) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")
