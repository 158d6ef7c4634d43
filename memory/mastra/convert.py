"""Turn Mastra's messages into messages of ours; pure.

Mastra keeps all steps of an answer in one message. Here each model response is a message, and
so is what its tools returned. What was only for pages (``data-…`` parts) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from memory.messages import interrupted_returns, user_prompt

from .source import Row, SourceMessage


def messages_of(message: SourceMessage) -> list[ModelMessage]:
    """Return what a stored message becomes: nothing, where it says nothing to a model."""
    if message.role == "user":
        return list(_prompt(message))
    if message.role == "assistant":
        return list(_steps(message.parts, message.created_at))
    return []


def _prompt(message: SourceMessage) -> Iterator[ModelMessage]:
    texts = [str(part["text"]) for part in message.parts if part.get("type") == "text"]
    files = [_file(part) for part in message.parts if part.get("type") == "file"]
    text = "\n\n".join(texts)
    if text.strip() or files:
        yield user_prompt(text, message.created_at, attachments=files)


def _file(part: Row) -> Any:
    data, kind = str(part["data"]), str(part.get("mimeType") or "application/octet-stream")
    if data.startswith("data:"):
        return BinaryContent.narrow_type(BinaryContent.from_data_uri(data))
    return ImageUrl(data) if kind.startswith("image/") else DocumentUrl(data, media_type=kind)


def _steps(parts: Sequence[Row], at: datetime) -> Iterator[ModelMessage]:
    said: list[ModelResponsePart] = []
    results: list[ToolReturnPart] = []
    waiting: list[ToolCallPart] = []

    def step() -> Iterator[ModelMessage]:
        if said:
            yield ModelResponse(parts=[*said], timestamp=at)
        if results:
            yield ModelRequest(parts=[*results], timestamp=at)
        if waiting:
            yield interrupted_returns(waiting, at)
        for pile in (said, results, waiting):
            pile.clear()

    for part in parts:
        kind = part.get("type")
        if kind == "step-start" or (results and kind in ("text", "reasoning")):
            yield from step()
        if kind == "tool-invocation":
            call, result = _invocation(part["toolInvocation"], at)
            said.append(call)
            if result is None:
                waiting.append(call)
            else:
                results.append(result)
        elif (words := _words(part)) is not None:
            said.append(words)
    yield from step()


def _words(part: Row) -> ModelResponsePart | None:
    match part:
        case {"type": "text", "text": str(text)} if text:
            return TextPart(text)
        case {"type": "reasoning", "reasoning": str(text)} if text:
            return ThinkingPart(text)
    return None


def _invocation(found: Row, at: datetime) -> tuple[ToolCallPart, ToolReturnPart | None]:
    name, key = str(found["toolName"]), str(found["toolCallId"])
    call = ToolCallPart(name, found.get("args") or {}, tool_call_id=key)
    if found.get("state") != "result":
        return call, None
    return call, ToolReturnPart(name, found.get("result"), tool_call_id=key, timestamp=at)
