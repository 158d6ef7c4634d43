"""Check a value against a JSON schema, as far as schemas of small records go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": Mapping,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def problem_with(value: Any, schema: Mapping[str, Any], place: str = "") -> str:
    """Return the first thing that is wrong with a JSON value, with its place; "" for none.

    Reads ``type``, ``enum``, ``const``, ``properties``, ``required``, ``additionalProperties``
    and ``items``; other rules of a schema are for the model to read.
    """
    return next(_problems(value, schema, place), "")


def _problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    where = f"{place}: " if place else ""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and value not in allowed:
        yield f"{where}must be one of {', '.join(map(repr, allowed))}"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{where}must be {' or '.join(kinds)}, not {_kind(value)}"
    elif isinstance(value, Mapping):
        yield from _of_object(value, schema, place)
    elif isinstance(value, list):
        yield from _of_items(value, schema.get("items"), place)


def _of_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    inside = f"{place}." if place else ""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{inside}{name}: is missing"
    for name, each in value.items():
        if name in properties:
            yield from _problems(each, properties[name], f"{inside}{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{inside}{name}: is not asked for"


def _of_items(value: Sequence[Any], schema: object, place: str) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for index, each in enumerate(value):
            yield from _problems(each, schema, f"{place}[{index}]")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("number", "integer"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))


def _kind(value: Any) -> str:
    return next((kind for kind in _TYPES if _is(value, kind)), "something else")
