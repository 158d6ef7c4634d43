"""Write the marker that an erased message leaves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory.messages import dump

ERASED = "(erased)"
MARK = {"erased": True}


def blank(payload: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """Return a stored message without anything it said: its calls and results stay paired.

    Tools keep their names, and nothing else of what they were given or gave.
    """
    if payload["kind"] == "response":
        return dump(_response(payload["parts"], at))
    return dump(_request(payload["parts"], at))


def _response(parts: list[dict[str, Any]], at: datetime) -> ModelMessage:
    kept: list[ModelResponsePart] = [
        ToolCallPart(part["tool_name"], {}, part["tool_call_id"])
        for part in parts
        if part["part_kind"] == "tool-call"
    ]
    return ModelResponse(parts=kept or [TextPart(ERASED)], timestamp=at, metadata=dict(MARK))


def _request(parts: list[dict[str, Any]], at: datetime) -> ModelMessage:
    kept: list[ModelRequestPart] = []
    for part in parts:
        if part["part_kind"] == "tool-return":
            call = part["tool_call_id"]
            kept.append(ToolReturnPart(part["tool_name"], ERASED, call, timestamp=at))
        elif part["part_kind"] == "retry-prompt" and part.get("tool_name"):
            name, call = part["tool_name"], part["tool_call_id"]
            kept.append(RetryPromptPart(ERASED, tool_name=name, tool_call_id=call, timestamp=at))
    if not kept or any(part["part_kind"] == "user-prompt" for part in parts):
        kept.append(UserPromptPart(ERASED, timestamp=at))
    return ModelRequest(parts=kept, timestamp=at, metadata=dict(MARK))
