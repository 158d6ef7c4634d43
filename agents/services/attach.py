"""Take in the files that come with a prompt, and give them to its message.

A file is stored when it arrives. What the browser gets for it is a signed token, good for this
conversation and for a day: nobody can attach a file by knowing what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.core.files.uploadedfile import UploadedFile
from pydantic_ai.messages import MultiModalContent

from memory import media
from memory.detach import Missing, content_of_reference
from memory.headers import TEXT_TYPES, measure, sniff
from memory.messages import safe_text
from memory.stored import Reference

from ..models import Turn
from .send import BadPrompt

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"
TYPES = IMAGE_TYPES | {PDF} | TEXT_TYPES
WELCOME = "Attach a picture (PNG, JPEG, GIF, WebP), a PDF or a file of plain text."

#: A few bytes can unfold to any number of pixels, in the browser of whoever looks.
MOST_PIXELS = 50_000_000
TOKEN_LASTS = timedelta(days=1)
LONGEST_NAME = 100
MOST_HANDED_IN = 100

_SALT = "agents.attachment"
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\"'<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_BY_ENDING = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": PDF,
}

Attached = dict[str, Any]
"""What a waiting turn keeps of a file: its name, its media type, and what stands for its bytes."""


class BadFile(BadPrompt):
    """Say in one sentence why a file cannot be attached, and what to do."""


def take(file: UploadedFile[Any]) -> Attached:
    """Store an uploaded file and return what a turn keeps of it. Raises BadFile."""
    name = clean_name(file.name or "")
    if (file.size or 0) > settings.ATTACHMENT_BYTES:
        raise BadFile(too_large(name))
    data = file.read()
    media_type = checked_type(name, data)
    reference = media.keep(data, media_type=media_type, name=name)
    return {"name": name, "media_type": media_type, **reference.as_json()}


def too_large(name: str) -> str:
    """Return the sentence about a file that is larger than files may be."""
    most = settings.ATTACHMENT_BYTES / 1024 / 1024
    return f"{name} is larger than {most:g} MB. Attach a smaller one."


def clean_name(name: str) -> str:
    """Return a file's name without its folder and without what could pass for a quotation."""
    last = re.split(r"[/\\]", name)[-1]
    clean = " ".join(safe_text(_NOT_IN_NAMES.sub(" ", last)).split()).strip(". ")
    if len(clean) <= LONGEST_NAME:
        return clean or "file"
    ending = PurePosixPath(clean).suffix[:10]
    return clean[: LONGEST_NAME - len(ending)] + ending


def checked_type(name: str, data: bytes) -> str:
    """Return what a file is by its content; its name only tells texts apart. Raises BadFile."""
    if not data:
        raise BadFile(f"{name} is empty. Attach a file with something in it.")
    named, found = _BY_ENDING.get(PurePosixPath(name).suffix.lower(), ""), sniff(data)
    if not found:
        raise BadFile(f"{name} is of a kind that cannot be attached. {WELCOME}")
    if found in IMAGE_TYPES:
        _check_picture(name, data)
        return found
    if found == PDF:
        return found
    if named in IMAGE_TYPES or named == PDF:
        raise BadFile(f"{name} is not what its name says: its content is text. {WELCOME}")
    return named if named in TEXT_TYPES and named != "application/json" else found


def _check_picture(name: str, data: bytes) -> None:
    extent = measure(data)
    if extent.width is None or extent.height is None:
        raise BadFile(f"{name} is a damaged picture. Save it anew and attach that.")
    if extent.width * extent.height > MOST_PIXELS:
        raise BadFile(
            f"{name} has {extent.width:,} × {extent.height:,} pixels, more than "
            f"{MOST_PIXELS // 1_000_000} million. Attach a smaller one."
        )


def token_of(thread_id: UUID, attached: Attached) -> str:
    """Return what the browser keeps of a file until the prompt is sent."""
    return signing.dumps({**attached, "thread": str(thread_id)}, salt=_SALT, compress=True)


def redeem(thread_id: UUID, tokens: Sequence[str]) -> list[Attached]:
    """Return the files that tokens of this conversation stand for. Raises BadFile."""
    most = settings.ATTACHMENTS_PER_MESSAGE
    if len(tokens) > most:
        raise BadFile(f"A message takes at most {most} files. Remove {len(tokens) - most}.")
    return _named_apart([_redeemed(thread_id, token) for token in tokens])


def _redeemed(thread_id: UUID, token: str) -> Attached:
    try:
        attached: Attached = signing.loads(token, salt=_SALT, max_age=TOKEN_LASTS)
    except signing.SignatureExpired:
        raise BadFile("A file was attached too long ago. Remove it and attach it again.") from None
    except signing.BadSignature:
        raise BadFile("A file is not known here. Remove it and attach it again.") from None
    if attached.pop("thread") != str(thread_id):
        raise BadFile("A file belongs to another conversation. Attach it here again.")
    if not media.exists(attached["hash"]):
        raise BadFile(f"{attached['name']} is no longer here. Remove it and attach it again.")
    return attached


def _named_apart(files: list[Attached]) -> list[Attached]:
    """Return the files with no name used twice: models tell files apart by name."""
    used: set[str] = set()
    for file in files:
        path, number = PurePosixPath(file["name"]), 1
        while file["name"] in used:
            number += 1
            file["name"] = f"{path.stem} ({number}){path.suffix}"
        used.add(file["name"])
    return files


def contents(attached: Iterable[Mapping[str, Any]]) -> list[MultiModalContent | Missing]:
    """Return the files of a turn as they are put into its message, in order.

    Every kind of text goes as plain text: some providers take no other, and those without
    documents are sent it as text.
    """
    return [
        content_of_reference(
            Reference.of_json(file),
            media_type="text/plain" if file["media_type"] in TEXT_TYPES else file["media_type"],
            name=file["name"],
        )
        for file in attached
    ]


def waiting() -> set[str]:
    """Return the hashes of files whose prompt is not a message yet; a sweep must leave them."""
    prompts = Turn.objects.waiting().exclude(attachments=[])
    return {
        file["hash"] for files in prompts.values_list("attachments", flat=True) for file in files
    }
