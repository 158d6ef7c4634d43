"""Take the bytes of pictures and files out of a message, and put them back.

What stays in the message's place is the same content with no bytes; what stands for the bytes
is listed beside the parts, each with the way to its place. Nothing that a person, a model or a
tool writes can get into that list, so no text can lay hold of somebody's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelMessage,
    TextContent,
    TextPart,
    UserPromptPart,
)

from memory.stored import ESTIMATE, Reference, StoredContent, StoredImage, reference_of, stored

Way = tuple[int | str, ...]


class Missing(TextContent):
    """Say to the model, in a prompt, that a file is gone; ``metadata`` is its reference."""


def detach(message: ModelMessage) -> tuple[ModelMessage, list[dict[str, Any]]]:
    """Store a message's media; return it without their bytes, and their references.

    A message without media is returned itself.
    """
    found: list[dict[str, Any]] = []
    take = partial(_emptied, found)
    parts: list[Any] = [_part_with(part, (i,), take) for i, part in enumerate(message.parts)]
    if not found:
        return message, []
    return _with_parts(message, parts), found


def attach(message: ModelMessage, references: Sequence[Mapping[str, Any]]) -> ModelMessage:
    """Put what the references stand for in its places, in this message, and return it.

    Bytes that are gone leave a sentence that says so.
    """
    for reference in references:
        _put(message, reference)
    return message


def present(message: ModelMessage) -> ModelMessage:
    """Return a loaded message with a sentence for each file that went since; itself if none did.

    For messages that were kept in memory for a while before they are sent.
    """
    parts: list[Any] = [
        _part_with(part, (i,), _told if isinstance(part, UserPromptPart) else _in_words)
        for i, part in enumerate(message.parts)
    ]
    if _same(parts, message.parts):
        return message
    return _with_parts(message, parts)


def _with_parts(message: Any, parts: list[Any]) -> ModelMessage:
    changed: ModelMessage = replace(message, parts=parts)
    return changed


Change = Callable[[Any, Way], Any]


def _part_with(part: Any, way: Way, change: Change) -> Any:
    content = getattr(part, "content", None)
    changed = _mapped(content, way, change)
    if changed is content:
        return part
    if isinstance(part, FilePart) and isinstance(changed, str):
        return TextPart(changed)
    return replace(part, content=changed)


def _mapped(value: Any, way: Way, change: Change) -> Any:
    """Return the value with each of its media changed; the same object when none was."""
    if isinstance(value, BinaryContent | Missing):
        return change(value, way)
    if isinstance(value, list | tuple):
        items = [_mapped(item, (*way, index), change) for index, item in enumerate(value)]
        return value if _same(items, value) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        tree = {key: _mapped(item, (*way, key), change) for key, item in value.items()}
        return value if _same(tree.values(), value.values()) else tree
    return value


def _told(content: Any, way: Way) -> Any:
    from memory import media

    if not isinstance(content, StoredContent | StoredImage):
        return content
    reference = reference_of(content)
    if media.exists(reference.hash):
        return content
    return _gone(reference, content.media_type, content.identifier)


def _in_words(content: Any, way: Way) -> Any:
    told = _told(content, way)
    return told.content if isinstance(told, Missing) else told


def _gone(reference: Reference, media_type: str, name: str) -> Missing:
    known = {"reference": reference, "media_type": media_type, "name": name}
    return Missing(f"[The file {name} is no longer available.]", metadata=known)


def _same(ours: Any, theirs: Any) -> bool:
    return all(mine is other for mine, other in zip(ours, theirs, strict=True))


def _emptied(found: list[dict[str, Any]], content: Any, way: Way) -> BinaryContent:
    if isinstance(content, Missing):
        found.append({"at": list(way), **content.metadata["reference"].as_json()})
        return _stub(content.metadata["media_type"], content.metadata["name"], None)
    reference = _kept(content)
    found.append({"at": list(way), **reference.as_json()})
    # An estimate is for us; Google takes every key it does not know for one about video.
    metadata = {k: v for k, v in (content.vendor_metadata or {}).items() if k != ESTIMATE}
    return _stub(content.media_type, content.identifier, metadata or None)


def _kept(content: BinaryContent) -> Reference:
    # Imported at work: only messages with media need a database.
    from memory import media

    known = reference_of(content)
    if isinstance(content, StoredContent | StoredImage) and media.touch(known.hash):
        return known
    return media.keep(
        content.data, media_type=content.media_type, name=content.identifier, tokens=known.tokens
    )


def _stub(media_type: str, name: str, metadata: dict[str, Any] | None) -> BinaryContent:
    return BinaryContent.narrow_type(
        BinaryContent(b"", media_type=media_type, identifier=name, vendor_metadata=metadata)
    )


def _put(message: ModelMessage, listed: Mapping[str, Any]) -> None:
    reference = Reference.of_json(listed)
    index, *way = listed["at"]
    part: Any = message.parts[index]
    if not way:
        _put_alone(message, index, reference)
        return
    holder = part.content
    for step in way[:-1]:
        holder = holder[step]
    stub = holder[way[-1]]
    holder[way[-1]] = _content(reference, stub, as_text=not isinstance(part, UserPromptPart))


def _put_alone(message: ModelMessage, index: int, reference: Reference) -> None:
    part: Any = message.parts[index]
    content = _content(reference, part.content, as_text=True)
    if isinstance(part, FilePart) and isinstance(content, str):
        parts: Any = message.parts
        parts[index] = TextPart(content)
    else:
        part.content = content


def _content(reference: Reference, stub: BinaryContent, *, as_text: bool) -> Any:
    content = content_of_reference(
        reference,
        media_type=stub.media_type,
        name=stub.identifier,
        vendor_metadata=stub.vendor_metadata,
    )
    return content.content if as_text and isinstance(content, Missing) else content


def content_of_reference(
    reference: Reference,
    *,
    media_type: str,
    name: str,
    vendor_metadata: dict[str, Any] | None = None,
) -> BinaryContent | Missing:
    """Return what a reference stands for, or a sentence to the model that it is gone."""
    from memory import media

    if media.exists(reference.hash):
        return stored(reference, media_type=media_type, name=name, vendor_metadata=vendor_metadata)
    return _gone(reference, media_type, name)
