"""Make of the OpenAPI schema what the page about it lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt

Schema = Mapping[str, Any]
MOST_DEEP = 4
_EXAMPLES = {"string": "…", "integer": 0, "number": 0, "boolean": False, "null": None}


@dataclass(frozen=True)
class Parameter:
    """Describe what a request takes beside its body."""

    name: str
    place: str
    kind: str
    required: bool
    about: str


@dataclass(frozen=True)
class Operation:
    """Describe one thing that can be called, with a call to copy."""

    id: str
    method: str
    path: str
    summary: str
    about: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: str
    answers: tuple[tuple[str, str], ...]
    curl: str


def operations_of(schema: Schema, origin: str) -> dict[str, list[Operation]]:
    """Return the operations of a schema by their tags, in its order."""
    found: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["Others"])[0]
            made = _operation(schema, origin, path, method, operation)
            found.setdefault(tag, []).append(made)
    return found


def about(schema: Schema) -> str:
    """Return what the schema says of itself, as HTML; its text is ours."""
    html: str = MarkdownIt("commonmark", {"html": False}).render(schema["info"]["description"])
    return html


def _operation(schema: Schema, origin: str, path: str, method: str, operation: Schema) -> Operation:
    body = _body(schema, operation)
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        about=tuple(_paragraphs(operation.get("description", ""))),
        parameters=tuple(_parameters(operation)),
        body=body,
        answers=tuple(_answers(operation)),
        curl=_curl(origin, path, method, body),
    )


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield " ".join(paragraph.replace("`", "").split())


def _parameters(operation: Schema) -> Iterator[Parameter]:
    for each in operation.get("parameters", ()):
        kind = each["schema"]
        yield Parameter(
            each["name"],
            each["in"],
            _kind(kind),
            bool(each.get("required")),
            each.get("description", "").replace("`", ""),
        )


def _kind(kind: Schema) -> str:
    if "anyOf" in kind:
        kinds = [_kind(each) for each in kind["anyOf"]]
        return " or ".join(each for each in kinds if each != "null")
    if "enum" in kind:
        return ", ".join(str(each) for each in kind["enum"] if each != "")
    return str(kind.get("format") or kind.get("type", "anything"))


def _answers(operation: Schema) -> Iterator[tuple[str, str]]:
    for status, answer in operation["responses"].items():
        if status == "default":
            continue
        content = answer.get("content", {}).get("application/json", {}).get("schema", {})
        yield str(status), _name(content) or answer.get("description", "")


def _name(kind: Schema) -> str:
    if "items" in kind:
        return f"a list of {_name(kind['items'])}"
    name = str(kind.get("$ref", "")).rpartition("/")[2]
    if name.startswith("Page_"):
        return f"a page of {name.removeprefix('Page_').removesuffix('_').removesuffix('Out')}"
    return name.removesuffix("Out")


def _body(schema: Schema, operation: Schema) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    return json.dumps(_example(schema, content["schema"], 0), ensure_ascii=False)


def _example(schema: Schema, kind: Schema, depth: int) -> Any:
    if "$ref" in kind:
        return _example(schema, _resolved(schema, kind), depth)
    if "default" in kind:
        return kind["default"]
    if "allOf" in kind or "anyOf" in kind:
        return _example(schema, (kind.get("allOf") or kind["anyOf"])[0], depth)
    if kind.get("type") == "object" and depth < MOST_DEEP:
        properties = kind.get("properties", {})
        return {name: _example(schema, each, depth + 1) for name, each in properties.items()}
    if kind.get("type") == "array":
        return []
    return _EXAMPLES.get(kind.get("type", ""))


def _resolved(schema: Schema, kind: Schema) -> Schema:
    name = kind["$ref"].rpartition("/")[2]
    found: Schema = schema["components"]["schemas"][name]
    return found


def _curl(origin: str, path: str, method: str, body: str) -> str:
    lines = [f'curl -H "Authorization: Bearer $TOKEN" "{origin}{path}"']
    if method != "get":
        lines.append(f"-X {method.upper()}")
    if body:
        quoted = body.replace("'", "'\\''")
        lines += ['-H "Content-Type: application/json"', f"-d '{quoted}'"]
    return " \\\n  ".join(lines)
