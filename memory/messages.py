"""Translate between the messages of pydantic-ai and what memory stores and reads."""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeGuard, cast
from urllib.parse import urlsplit

from pydantic_ai.messages import (
    BaseToolReturnPart,
    BinaryContent,
    CompactionPart,
    FilePart,
    FileUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    MultiModalContent,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryPromptPart,
    SpeechPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)
from pydantic_core import PydanticSerializationError

from memory.detach import Missing, attach, detach
from memory.engine.escape import clean, escape
from memory.engine.values import MessageKind, Part, PartKind
from memory.stored import REFERENCES, reference_of

GAP = "omsite_gap"
"""The key of a request's ``metadata`` that says its first part is a gap marker, and which."""

INTERRUPTED = "The turn was interrupted before this tool gave a result."

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Databases refuse both inside text and JSON: NUL, and halves of a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_UNKNOWN_MEDIA = "application/octet-stream"


def safe_text(text: str) -> str:
    """Return the text as any database and any encoder takes it.

    Two halves of a surrogate pair become the character they mean; a lone half and NUL become
    U+FFFD.
    """
    if not _UNSTORABLE.search(text):
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\x00", _REPLACEMENT)


def kind_of(message: ModelMessage) -> MessageKind:
    """Return whether the message was sent to the model or came from it."""
    return MessageKind(message.kind)


def parts_of(message: ModelMessage) -> tuple[Part, ...]:
    """Return what the message says, piece by piece, in order.

    System prompts, cache points and records of settings are not part of the conversation and
    yield nothing. Tools run by the provider itself carry no call id: they are never left open.
    """
    marker = gap_of(message)
    parts = message.parts[1:] if marker else message.parts
    try:
        pieces = [piece for part in parts for piece in _pieces(part)]
    except PydanticSerializationError:
        # Arguments or a result hold text that JSON cannot carry: read them as they are stored.
        return parts_of(load(dump(message)))
    if marker:
        pieces.insert(0, Part(PartKind.GAP, marker))
    return tuple(
        replace(piece, text=safe_text(piece.text), tool=safe_text(piece.tool)) for piece in pieces
    )


def attachments(message: ModelMessage) -> tuple[MultiModalContent | Missing, ...]:
    """Return the pictures and files of a message, one for each ATTACHMENT of ``parts_of``."""
    return tuple(item for part in message.parts for item in _attached(part))


def gap_of(message: ModelMessage) -> str:
    """Return the gap marker a request opens with, or nothing.

    It is told by what the application noted beside the parts, never by what a text says.
    """
    if not (isinstance(message, ModelRequest) and message.metadata and message.parts):
        return ""
    noted = message.metadata.get(GAP)
    return noted if isinstance(noted, str) else ""


def plain_text(message: ModelMessage) -> str:
    """Return what people can search a message by: everything it says but its thinking."""
    return "\n".join(
        part.text if part.kind is PartKind.ATTACHMENT else f"{part.tool} {part.text}".strip()
        for part in parts_of(message)
        if part.kind not in (PartKind.THINKING, PartKind.GAP)
    )


def dump(message: ModelMessage) -> dict[str, Any]:
    """Return the message as a JSON object that every database takes.

    The bytes of pictures and files are stored, and referenced under the key ``media``; this
    alone touches the database. Everything comes back equal from ``load`` except the
    instructions, which are left out, the characters that ``safe_text`` replaces, and what JSON
    has no form for inside a tool's result or a provider's details: a time, say, comes back as
    text.
    """
    bare, references = detach(message)
    payload: dict[str, Any] = ModelMessagesTypeAdapter.dump_python([bare], mode="json")[0]
    if isinstance(message, ModelRequest):
        payload["instructions"] = None
    if references:
        payload[REFERENCES] = references
    safe: dict[str, Any] = _safe_tree(payload)
    return safe


def in_words(message: ModelMessage) -> ModelMessage:
    """Return a message whose results JSON has no form for are text, like one that holds itself."""
    parts: list[Any] = [
        replace(part, content=_written(part.content)) if _unfit(part) else part
        for part in message.parts
    ]
    told: Any = message
    return cast("ModelMessage", replace(told, parts=parts))


def _unfit(part: Any) -> TypeGuard[ToolReturnPart]:
    if not isinstance(part, ToolReturnPart):
        return False
    try:
        dump(ModelRequest(parts=[part]))
    except (PydanticSerializationError, RecursionError):
        return True
    return False


def _written(content: Any) -> str:
    try:
        return repr(content)
    except Exception:  # noqa: BLE001 - a tool may return whatever it likes
        return f"({type(content).__name__} that cannot be written down)"


def load(payload: dict[str, Any]) -> ModelMessage:
    """Return the message that ``dump`` made this object of.

    Pictures and files are read when their bytes are asked for; where they are gone, a sentence
    says so. Raises pydantic's ValidationError when the object is not a message.
    """
    references = payload.get(REFERENCES)
    if references:
        payload = {key: value for key, value in payload.items() if key != REFERENCES}
    message = ModelMessagesTypeAdapter.validate_json(json.dumps([payload]))[0]
    return attach(message, references) if references else message


def user_prompt(
    text: str,
    at: datetime,
    *,
    attachments: Sequence[MultiModalContent | Missing] = (),
    gap: str = "",
) -> ModelRequest:
    """Return the request that opens a turn: what a person wrote, and when.

    ``attachments`` follow the text in their order. ``gap`` says how long nothing was said, like
    ``2 hours later``; the model reads it as a reminder before the text.
    """
    content: str | list[UserContent] = text
    if attachments:
        content = [text, *attachments] if text.strip() else [*attachments]
    parts: list[ModelRequestPart] = [UserPromptPart(content, timestamp=at)]
    if not gap:
        return ModelRequest(parts=parts, timestamp=at)
    told = f"<reminder>{escape(clean(gap))}</reminder>"
    return ModelRequest(
        parts=[UserPromptPart(told, timestamp=at), *parts], timestamp=at, metadata={GAP: gap}
    )


def open_calls(messages: Iterable[ModelMessage]) -> list[ToolCallPart]:
    """Return the tool calls that no later message answers, in order."""
    waiting: dict[str, ToolCallPart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                waiting[part.tool_call_id] = part
            elif isinstance(part, ToolReturnPart | RetryPromptPart):
                waiting.pop(part.tool_call_id, None)
    return list(waiting.values())


def interrupted_returns(
    open_calls: Sequence[ToolCallPart], at: datetime | None = None
) -> ModelRequest:
    """Return the request that answers calls whose turn ended before their tools did.

    ``at`` is the time it carries; without it, now.
    """
    at = at or datetime.now(UTC)
    return ModelRequest(
        parts=[
            ToolReturnPart(
                call.tool_name,
                INTERRUPTED,
                call.tool_call_id,
                timestamp=at,
                outcome="interrupted",
            )
            for call in open_calls
        ],
        timestamp=at,
    )


def _pieces(part: object) -> Iterator[Part]:
    match part:
        case UserPromptPart():
            yield from _prompt(part)
        case TextPart():
            yield Part(PartKind.TEXT, part.content)
        case ThinkingPart():
            yield Part(PartKind.THINKING, part.content)
        case ToolCallPart():
            yield Part(PartKind.CALL, part.args_as_json_str(), part.tool_name, part.tool_call_id)
        case ToolReturnPart():
            yield from _result(part, part.tool_call_id)
        case NativeToolCallPart():
            yield Part(PartKind.CALL, part.args_as_json_str(), part.tool_name)
        case NativeToolReturnPart():
            yield from _result(part, "")
        case RetryPromptPart():
            yield _retry(part)
        case _:
            yield from _rare_pieces(part)


def _rare_pieces(part: object) -> Iterator[Part]:
    match part:
        case RetryFeedbackPart():
            yield Part(PartKind.USER, part.model_response())
        case FilePart():
            yield _attachment(part.content)
        case SpeechPart(speaker="user"):
            yield Part(PartKind.USER, part.content)
        case SpeechPart():
            yield Part(PartKind.TEXT, part.content)
        case CompactionPart(content=str(summary)):
            yield Part(PartKind.TEXT, summary)


def _prompt(part: UserPromptPart) -> Iterator[Part]:
    items = [part.content] if isinstance(part.content, str) else part.content
    for item in items:
        if isinstance(item, str):
            yield Part(PartKind.USER, item)
        elif isinstance(item, _FILES):
            yield _attachment(item)
        elif isinstance(item, TextContent):
            yield Part(PartKind.USER, item.content)


def _result(part: BaseToolReturnPart[Any], call_id: str) -> Iterator[Part]:
    kind = PartKind.RESULT if part.outcome == "success" else PartKind.FAILURE
    yield Part(kind, part.model_response_str(wrap_if_error=False), part.tool_name, call_id)
    yield from (_attachment(item, part.tool_name) for item in part.files)


def _retry(part: RetryPromptPart) -> Part:
    if part.tool_name is None:
        return Part(PartKind.USER, part.model_response())
    return Part(PartKind.FAILURE, part.model_response(), part.tool_name, part.tool_call_id)


_FILES = (FileUrl, BinaryContent, UploadedFile, Missing)


def _attached(part: object) -> Iterator[MultiModalContent | Missing]:
    match part:
        case UserPromptPart(content=[*items]):
            yield from (item for item in items if isinstance(item, _FILES))
        case BaseToolReturnPart():
            yield from part.files
        case FilePart():
            yield part.content


def _attachment(item: MultiModalContent | Missing, tool: str = "") -> Part:
    return Part(
        PartKind.ATTACHMENT,
        _label(item),
        tool=tool,
        media_type=media_type_of(item),
        media=_media_key(item),
    )


def _media_key(item: MultiModalContent | Missing) -> str:
    if isinstance(item, Missing):
        key: str = item.metadata["reference"].hash
        return key
    return reference_of(item).hash if isinstance(item, BinaryContent) else ""


def _label(item: MultiModalContent | Missing) -> str:
    if isinstance(item, Missing):
        return str(item.metadata["name"])
    if isinstance(item, UploadedFile):
        return item.file_id
    if isinstance(item, FileUrl) and not item.url.startswith("data:"):
        # The query of a link may be what grants access to it: it is nobody's label.
        address = urlsplit(item.url)
        return address.path.rstrip("/").rsplit("/", 1)[-1] or address.netloc
    return item.identifier


def media_type_of(item: MultiModalContent | Missing) -> str:
    """Return the media type of a picture or file, or that of unknown bytes."""
    if isinstance(item, Missing):
        return str(item.metadata["media_type"])
    try:
        return item.media_type
    except ValueError:
        # Thrown for a link with a query, or with an ending that says nothing.
        path = urlsplit(item.url).path if isinstance(item, FileUrl) else ""
        return mimetypes.guess_type(path)[0] or _UNKNOWN_MEDIA


def _safe_tree(value: Any) -> Any:
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, dict):
        return {safe_text(key): _safe_tree(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe_tree(item) for item in value]
    return value
