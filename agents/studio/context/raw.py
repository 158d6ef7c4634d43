"""Write a request down as pydantic-ai sends it: instructions, tools, and messages by role."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pprint import pformat
from textwrap import indent
from typing import Any
from uuid import UUID

from pydantic_ai.messages import (
    BinaryContent,
    FileUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    UploadedFile,
    UserPromptPart,
)

from agents.secrets import masked
from agents.services.told import INSTRUCTIONS, TOOLS
from agents.studio.context.inspected import Inspected, Part, rows_of
from memory.services.request import text_block

ROLES = {INSTRUCTIONS: "system", TOOLS: "tools"}
WIDTH = 96
ONLY_IN_ROWS = ("timestamp",)
FILES = (BinaryContent, FileUrl, UploadedFile)


@dataclass(frozen=True)
class Entry:
    """Hold one message of a request, or its instructions or tools, by role.

    ``content`` is None where it is not kept any more.
    """

    role: str
    kind: str
    tokens: int
    content: Any
    position: int | None = None

    @property
    def body(self) -> str:
        """Return the content as people read it."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, indent=2, ensure_ascii=False)

    @property
    def without_secrets(self) -> Entry:
        """Return the entry with what looks like a secret masked."""
        return replace(self, content=masked(self.content))

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the entry for a download."""
        placed = {} if self.position is None else {"position": self.position}
        return {
            "role": self.role,
            "kind": self.kind,
            **placed,
            "tokens": self.tokens,
            "content": self.content,
        }


def entries(
    thread_id: UUID,
    request: Inspected,
    draft: ModelMessage | None = None,
    *,
    most: int | None = None,
) -> list[Entry]:
    """Return a request entry by entry, in two statements; ``most`` messages, the newest."""
    runs = [{"first": p.first, "last": p.last} for p in request.sent if p.of_messages]
    rows = rows_of(thread_id, runs)
    stored = {} if rows is None else dict(_payloads(rows, most))
    return [each for part in request.sent for each in _entries(part, stored, draft)]


def _payloads(rows: Any, most: int | None) -> Iterator[tuple[int, Any]]:
    newest = rows.order_by("-position").values_list("position", "payload")
    yield from newest if most is None else newest[:most]


def _entries(part: Part, stored: Mapping[int, Any], draft: ModelMessage | None) -> Iterator[Entry]:
    if not part.of_messages:
        yield Entry(_role(part.kind), part.kind, part.tokens, _content(part))
    for said in part.said:
        if said.draft and draft is not None:
            yield Entry("user", part.kind, said.tokens, as_sent(draft), said.position)
        elif said.position in stored:
            payload = stored[said.position]
            yield Entry(role_of(payload), part.kind, said.tokens, payload, said.position)


def _role(kind: str) -> str:
    return ROLES.get(kind, "user")


def _content(part: Part) -> Any:
    if part.text is None or part.kind == INSTRUCTIONS:
        return part.text
    if part.kind == TOOLS:
        return json.loads(part.text)
    return as_sent(text_block(part.kind, part.text, part.tokens, source=part.source).message)


def role_of(payload: Mapping[str, Any]) -> str:
    """Return who speaks in a stored message, as providers name it."""
    if payload["kind"] == "response":
        return "assistant"
    kinds = {part["part_kind"] for part in payload["parts"]}
    return "tool" if kinds and kinds <= {"tool-return", "retry-prompt"} else "user"


def as_sent(message: ModelMessage) -> dict[str, Any]:
    """Return a message that is not stored as JSON, its files by name and without their bytes."""
    if isinstance(message, ModelRequest):
        message = replace(message, parts=[_without_bytes(part) for part in message.parts])
    payload: dict[str, Any] = ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]
    for each in (payload, *payload["parts"]):
        for name in ONLY_IN_ROWS:
            each.pop(name, None)
    return payload


def _without_bytes(part: Any) -> Any:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return part
    named = [
        f"[{item.media_type} {item.identifier}]" if isinstance(item, FILES) else item
        for item in part.content
    ]
    return replace(part, content=named)


def as_python(request: Inspected, found: Sequence[Entry]) -> str:
    """Return Python that builds a request with pydantic-ai; what is not kept is left out."""
    kept = [each for each in found if each.content is not None]
    messages = [_without_files(each.content) for each in kept if each.role not in ROLES.values()]
    said = {each.kind: each.content for each in kept if each.role in ROLES.values()}
    parts = [
        f"# {request.total:,} tokens, estimated, in {len(messages)} messages.",
        "from pydantic_ai import ModelMessagesTypeAdapter",
        f"instructions = {pformat(said.get(INSTRUCTIONS), width=WIDTH)}",
        f"tools = {pformat(said.get(TOOLS, []), width=WIDTH, sort_dicts=False)}",
        "messages = ModelMessagesTypeAdapter.validate_python(\n"
        f"{indent(pformat(messages, width=WIDTH, sort_dicts=False), '    ')}\n)",
    ]
    return "\n\n".join(parts) + "\n"


def _without_files(payload: Any) -> Any:
    """Return a message whose files are names, as their bytes are kept elsewhere."""
    if isinstance(payload, list):
        return [_without_files(each) for each in payload]
    if not isinstance(payload, dict):
        return payload
    if payload.get("media_type") and payload.get("kind"):
        return f"[{payload['media_type']} {payload.get('identifier', '')}]"
    return {name: _without_files(each) for name, each in payload.items()}


def download(
    thread_id: UUID, request: Inspected, found: Sequence[Entry], **more: Any
) -> dict[str, Any]:
    """Return a request as one JSON document."""
    return {
        "thread": str(thread_id),
        "request": request.key,
        "revision": request.revision,
        "hash": request.hash,
        "tokens": request.total,
        **more,
        "entries": [entry.as_json for entry in found],
    }
