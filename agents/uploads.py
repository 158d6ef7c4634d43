"""Take files in, and show those of a message to the members of its resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET, require_POST

from agents import words
from agents.access import Right, require, thread_or_404
from agents.log import named
from agents.services.attach import (
    IMAGE_TYPES,
    MOST_HANDED_IN,
    Attached,
    BadFile,
    clean_name,
    redeem,
    take,
    token_of,
    too_large,
)
from memory import media
from memory.models import Message
from memory.stored import REFERENCES, MediaMissing

FORM_BYTES = 64 * 1024


@require_POST
def upload(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Store one file, and answer with the token to send it by; else a sentence with 413 or 422."""
    require(request, Right.CHAT, thread_or_404(request, thread_id).resource)
    file = request.FILES.get("file")
    if file is None:
        return _refused("No file came with the request. Choose one and try again.", 422)
    if (file.size or 0) > settings.ATTACHMENT_BYTES:
        return _refused(too_large(clean_name(file.name or "")), 413)
    try:
        attached = take(file)
    except BadFile as refusal:
        return _refused(str(refusal), 422)
    kept = kept_file(thread_id, attached)
    return JsonResponse({"token": kept.token, "name": kept.name, "size": kept.size})


def _refused(sentence: str, status: int) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")


@dataclass(frozen=True)
class KeptFile:
    """Show a file that was taken in and not sent yet."""

    token: str
    name: str
    size: str


def kept_file(thread_id: UUID, attached: Attached) -> KeptFile:
    """Return a stored file as the composer shows it."""
    return KeptFile(
        token_of(thread_id, attached), attached["name"], words.filesize(attached["size"])
    )


@dataclass(frozen=True)
class HandedIn:
    """Hold the files of a form: those kept, and what is wrong with the others."""

    kept: tuple[KeptFile, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def tokens(self) -> list[str]:
        """Return what to send the kept files by."""
        return [file.token for file in self.kept]


def handed_in(request: HttpRequest, thread_id: UUID) -> HandedIn:
    """Return the files of a form, those of an earlier try first. Nothing is raised."""
    kept: list[KeptFile] = []
    refusals: list[str] = []
    for token in " ".join(request.POST.getlist("attachments")).split()[:MOST_HANDED_IN]:
        _try(lambda token=token: redeem(thread_id, [token])[0], thread_id, kept, refusals)
    for file in request.FILES.getlist("files"):
        _try(lambda file=file: take(file), thread_id, kept, refusals)
    return HandedIn(tuple(kept), tuple(refusals))


def _try(get: Any, thread_id: UUID, kept: list[KeptFile], refusals: list[str]) -> None:
    try:
        kept.append(kept_file(thread_id, get()))
    except BadFile as refusal:
        refusals.append(str(refusal))


@require_GET
def show(request: HttpRequest, thread_id: UUID, position: int, number: int) -> HttpResponse:
    """Send the bytes of a message's picture or file to a member of its resource."""
    thread_or_404(request, thread_id)
    message = get_object_or_404(Message, thread=thread_id, position=position)
    listed = message.payload.get(REFERENCES, ())
    if number >= len(listed):
        raise Http404
    etag = f'"{listed[number]["hash"]}"'
    if request.headers.get("If-None-Match") == etag and media.exists(listed[number]["hash"]):
        return _private(HttpResponseNotModified(), etag)
    try:
        data = media.read(listed[number]["hash"])
    except MediaMissing:
        raise Http404 from None
    name, media_type = named(message.payload, listed[number])
    return _private(_response(data, name, media_type), etag)


def _response(data: bytes, name: str, media_type: str) -> HttpResponse:
    """Return a file to look at when it is a plain picture, and to save whatever else it is."""
    inline = media_type in IMAGE_TYPES
    response = HttpResponse(data, content_type=media_type if inline else "application/octet-stream")
    place = "inline" if inline else "attachment"
    response["Content-Disposition"] = f"{place}; filename*=UTF-8''{quote(name, safe='')}"
    return response


def _private(response: HttpResponse, etag: str) -> HttpResponse:
    # Asked for anew each time, so that nobody sees it who was a member once, or after an erase.
    response["Cache-Control"] = "private, no-cache"
    response["ETag"] = etag
    return response
