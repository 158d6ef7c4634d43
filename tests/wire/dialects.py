"""The wire formats of three providers, as their SDKs speak them."""

from __future__ import annotations

import json
from typing import Any

from tests.wire.server import Call, Hear, Say

INPUT_TOKENS, OUTPUT_TOKENS = 120, 34
KEY = "sk-loopback-0123456789abcdef-SECRET"


def _frame(data: dict[str, Any] | str, event: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


class OpenAIChat:
    """Chat completions."""

    name = "openai-chat"
    model = "gpt-5-mini"
    key_variable = "OPENAI_API_KEY"
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }

    def environment(self, address: str) -> dict[str, str]:
        return {"OPENAI_BASE_URL": f"{address}/v1"}

    def streams(self, heard: Hear) -> bool:
        assert heard.path == "/v1/chat/completions"
        return bool(heard.body.get("stream"))

    def events(self, answer: Say | Call) -> list[bytes]:
        finish = "stop" if isinstance(answer, Say) else "tool_calls"
        deltas = [{"role": "assistant", "content": ""}, *self._deltas(answer)]
        chunks = [self._chunk([self._choice("delta", delta, None)]) for delta in deltas]
        last = self._chunk([self._choice("delta", {}, finish)])
        return [*map(_frame, chunks), _frame(last), _frame(self._chunk([])), _frame("[DONE]")]

    def body(self, answer: Say | Call) -> dict[str, Any]:
        if isinstance(answer, Say):
            message = {"role": "assistant", "content": answer.text}
            finish = "stop"
        else:
            call = {"id": answer.id, "type": "function", "function": self._function(answer)}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            finish = "tool_calls"
        whole = self._chunk([self._choice("message", message, finish)])
        return whole | {"object": "chat.completion", "usage": self.usage}

    def error(self, status: int, message: str) -> dict[str, Any]:
        code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status)
        return {"error": {"message": message, "type": "error", "param": None, "code": code}}

    def _deltas(self, answer: Say | Call) -> list[dict[str, Any]]:
        if isinstance(answer, Say):
            return [{"content": piece} for piece in answer.pieces]
        call = {"index": 0, "id": answer.id, "type": "function", "function": self._function(answer)}
        return [{"tool_calls": [call]}]

    def _function(self, call: Call) -> dict[str, str]:
        return {"name": call.tool, "arguments": json.dumps(call.arguments)}

    def _choice(self, field: str, content: dict[str, Any], finish: str | None) -> dict[str, Any]:
        return {"index": 0, field: content, "finish_reason": finish, "logprobs": None}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_715_176_560,
            "model": self.model,
            "choices": choices,
            "usage": None if choices else self.usage,
        }


class OpenAIResponses:
    """Responses."""

    name = "openai-responses"
    model = "gpt-5-mini"
    key_variable = "OPENAI_API_KEY"
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }

    def environment(self, address: str) -> dict[str, str]:
        return {"OPENAI_BASE_URL": f"{address}/v1"}

    def streams(self, heard: Hear) -> bool:
        assert heard.path == "/v1/responses"
        return bool(heard.body.get("stream"))

    def events(self, answer: Say | Call) -> list[bytes]:
        item = self._item(answer)
        begun = item | ({"content": []} if isinstance(answer, Say) else {"arguments": ""})
        events = [
            {"type": "response.created", "response": self._response([], "in_progress")},
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            *self._deltas(answer, item),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": self._response([item], "completed")},
        ]
        return [
            _frame(event | {"sequence_number": number}, str(event["type"]))
            for number, event in enumerate(events)
        ]

    def body(self, answer: Say | Call) -> dict[str, Any]:
        return self._response([self._item(answer)], "completed")

    def error(self, status: int, message: str) -> dict[str, Any]:
        return OpenAIChat().error(status, message)

    def _deltas(self, answer: Say | Call, item: dict[str, Any]) -> list[dict[str, Any]]:
        place = {"item_id": item["id"], "output_index": 0}
        if isinstance(answer, Call):
            arguments = item["arguments"]
            kind = "response.function_call_arguments"
            return [
                {"type": f"{kind}.delta", **place, "delta": arguments},
                {"type": f"{kind}.done", **place, "arguments": arguments, "name": answer.tool},
            ]
        place["content_index"] = 0
        empty = {"type": "output_text", "text": "", "annotations": []}
        deltas = [
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in answer.pieces
        ]
        return [
            {"type": "response.content_part.added", **place, "part": empty},
            *deltas,
            {"type": "response.output_text.done", **place, "text": answer.text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": empty | {"text": answer.text}},
        ]

    def _item(self, answer: Say | Call) -> dict[str, Any]:
        if isinstance(answer, Say):
            text = {"type": "output_text", "text": answer.text, "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}
        else:
            item = {
                "type": "function_call",
                "id": "fc_1",
                "call_id": answer.id,
                "name": answer.tool,
                "arguments": json.dumps(answer.arguments),
            }
        return item | {"status": "completed"}

    def _response(self, output: list[dict[str, Any]], status: str) -> dict[str, Any]:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_715_176_560,
            "status": status,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "usage": self.usage if output else None,
        }


class Anthropic:
    """Messages."""

    name = "anthropic"
    model = "claude-sonnet-4-6"
    key_variable = "ANTHROPIC_API_KEY"

    def environment(self, address: str) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": address}

    def streams(self, heard: Hear) -> bool:
        assert heard.path.split("?")[0] == "/v1/messages"
        return bool(heard.body.get("stream"))

    def events(self, answer: Say | Call) -> list[bytes]:
        stop = "end_turn" if isinstance(answer, Say) else "tool_use"
        block = self._block(answer)
        begun = block | ({"text": ""} if isinstance(answer, Say) else {"input": {}})
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": self._message([], None)},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            *(
                {"type": "content_block_delta", "index": 0, "delta": delta}
                for delta in self._deltas(answer)
            ),
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {"output_tokens": OUTPUT_TOKENS},
            },
            {"type": "message_stop"},
        ]
        return [_frame(event, event["type"]) for event in events]

    def body(self, answer: Say | Call) -> dict[str, Any]:
        stop = "end_turn" if isinstance(answer, Say) else "tool_use"
        return self._message([self._block(answer)], stop)

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        return {
            "type": "error",
            "error": {"type": kinds.get(status, "api_error"), "message": message},
        }

    def _deltas(self, answer: Say | Call) -> list[dict[str, Any]]:
        if isinstance(answer, Say):
            return [{"type": "text_delta", "text": piece} for piece in answer.pieces]
        return [{"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}]

    def _block(self, answer: Say | Call) -> dict[str, Any]:
        if isinstance(answer, Say):
            return {"type": "text", "text": answer.text}
        return {
            "type": "tool_use",
            "id": answer.id,
            "name": answer.tool,
            "input": answer.arguments,
        }

    def _message(self, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": INPUT_TOKENS,
                "output_tokens": OUTPUT_TOKENS if stop else 1,
            },
        }


class Google:
    """Generate content."""

    name = "google"
    model = "gemini-3.8-flash"
    key_variable = "GOOGLE_API_KEY"

    def environment(self, address: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": address}

    def streams(self, heard: Hear) -> bool:
        path = heard.path.split("?")[0]
        assert path.startswith(f"/v1beta/models/{self.model}:")
        return path.endswith(":streamGenerateContent")

    def events(self, answer: Say | Call) -> list[bytes]:
        parts = self._parts(answer)
        finishes = [None] * (len(parts) - 1) + ["STOP"]
        return [
            _frame(self._chunk(part, finish)) for part, finish in zip(parts, finishes, strict=True)
        ]

    def body(self, answer: Say | Call) -> dict[str, Any]:
        whole = Say((answer.text,)) if isinstance(answer, Say) else answer
        return self._chunk(self._parts(whole)[0], "STOP")

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        return {"error": {"code": status, "message": message, "status": kinds[status]}}

    def _parts(self, answer: Say | Call) -> list[dict[str, Any]]:
        if isinstance(answer, Say):
            return [{"text": piece} for piece in answer.pieces]
        call = {"name": answer.tool, "args": answer.arguments, "id": answer.id}
        return [{"functionCall": call}]

    def _chunk(self, part: dict[str, Any], finish: str | None) -> dict[str, Any]:
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}}
        return {
            "candidates": [candidate | ({"finishReason": finish} if finish else {})],
            "usageMetadata": {
                "promptTokenCount": INPUT_TOKENS,
                "candidatesTokenCount": OUTPUT_TOKENS,
                "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
            },
            "modelVersion": self.model,
            "responseId": "resp-1",
        }


DIALECTS = (OpenAIChat(), OpenAIResponses(), Anthropic(), Google())
