"""Offer the offline rules as a pydantic-ai model, under the name ``offline``."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from uuid import uuid4

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from memory.offline.answer import Asked, Call, Said, answer
from memory.offline.extract import estimate, observe
from memory.offline.merge import reflect

NAME = "offline"
OBSERVER = "You are the Observer."
REFLECTOR = "You are the Reflector."

#: What the offline model can be told to do wrong, by what follows its name and a colon.
FAILS, EMPTY, SLOW = "fails", "empty", "slow"
SLOW_SECONDS = 15.0

_WORD = re.compile(r"\S+\s*")

Count = Callable[[str], int]

#: What the server writes into a request beside memory and messages.
NOTES = ("<reminder>", "<other-conversations>")


class OfflineModel(FunctionModel):
    """Observe, reflect and answer by rules, taking ``delay`` seconds for each call.

    The job is told from the first line of the instructions. ``count`` counts tokens. ``mode`` is
    empty, FAILS, EMPTY or SLOW, for trying out what happens when a model does not work.
    """

    def __init__(self, delay: float = 0.0, *, count: Count = estimate, mode: str = "") -> None:
        super().__init__(self._respond, stream_function=self._stream, model_name=NAME)
        self._delay = delay + SLOW_SECONDS if mode == SLOW else delay
        self._count = count
        self._mode = mode

    async def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(self._delay)
        said = await self._thought(messages, info)
        if isinstance(said, Call):
            part = ToolCallPart(said.tool, dict(said.arguments), tool_call_id=_call_id())
            return ModelResponse(parts=[part], model_name=NAME)
        return ModelResponse(parts=[TextPart(said)], model_name=NAME)

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        said = await self._thought(messages, info)
        if isinstance(said, Call):
            arguments = json.dumps(said.arguments)
            yield {0: DeltaToolCall(said.tool, arguments, tool_call_id=_call_id())}
            return
        pieces = _WORD.findall(said)
        for piece in pieces:
            await asyncio.sleep(self._delay / len(pieces))
            yield piece
        if not pieces:
            yield ""

    async def _thought(self, messages: list[ModelMessage], info: AgentInfo) -> str | Call:
        # A long conversation takes a second to read: on the loop every page would stand still.
        return await asyncio.to_thread(self._say, messages, info)

    def _say(self, messages: Sequence[ModelMessage], info: AgentInfo) -> str | Call:
        if self._mode == FAILS:
            raise ModelHTTPError(500, NAME, {"error": "The offline model was told to fail."})
        if self._mode == EMPTY:
            return ""
        job = (info.instructions or "").lstrip().split("\n", 1)[0].strip()
        if job == OBSERVER:
            return observe(_prompt(messages), self._count)
        if job == REFLECTOR:
            return reflect(_prompt(messages), count=self._count)
        return answer(_asked(messages, info))


def _call_id() -> str:
    return f"offline_{uuid4().hex[:12]}"


def _prompt(messages: Sequence[ModelMessage]) -> str:
    return "\n".join(text for message in messages for text in _user_texts(message))


def _user_texts(message: ModelMessage) -> list[str]:
    if not isinstance(message, ModelRequest):
        return []
    contents = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    pieces = [[content] if isinstance(content, str) else content for content in contents]
    return [piece for content in pieces for piece in content if isinstance(piece, str)]


def _asked(messages: Sequence[ModelMessage], info: AgentInfo) -> Asked:
    memory, said = "", []
    for message in messages:
        if isinstance(message, ModelResponse):
            said += [Said(False, p.content) for p in message.parts if isinstance(p, TextPart)]
        texts = _user_texts(message)
        if texts and texts[0].startswith("<memory>"):
            memory = "".join(texts)
            continue
        said += [Said(True, text) for text in texts if not text.startswith(NOTES)]
    return Asked(
        memory=memory,
        messages=said,
        tools={tool.name: tool.parameters_json_schema for tool in info.function_tools},
        results=_results(messages[-1]) if messages else (),
    )


def _results(message: ModelMessage) -> list[tuple[str, str]]:
    if not isinstance(message, ModelRequest):
        return []
    returned = [part for part in message.parts if isinstance(part, ToolReturnPart)]
    return [(part.tool_name, part.model_response_str()) for part in returned]
