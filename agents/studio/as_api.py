"""Say how a script asks for what a page shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest

from agents.lab.models import Pane
from memory.models import Resource, Thread

Call = tuple[str, str]


def calls(
    request: HttpRequest, page: str, thread: Thread | None, resource: Resource | None
) -> list[Call]:
    """Return what a page shows, each in words and as a call with curl; of some pages nothing."""
    origin = f"{request.scheme}://{request.get_host()}/api/v1"
    match = request.resolver_match
    kwargs = match.kwargs if match else {}
    found = _of_thread(request, page, thread, kwargs) if thread else _of_no_thread(page, resource)
    if "lab_id" in kwargs:
        found = _of_lab(kwargs["lab_id"])
    if "cycle_id" in kwargs:
        found = iter([("The call", f"/cycles/{kwargs['cycle_id']}")])
    return [
        (words, f'curl -H "Authorization: Bearer $TOKEN" "{origin}{path}"') for words, path in found
    ]


def _of_thread(
    request: HttpRequest, page: str, thread: Thread, kwargs: dict[str, Any]
) -> Iterator[Call]:
    place = f"/threads/{thread.pk}"
    match page:
        case "chat":
            yield "The messages", f"{place}/messages"
            yield "The state of its memory", f"{place}/memory"
        case "memory":
            yield from _of_memory(request, place)
        case "context" if "number" in kwargs:
            yield "The requests of this turn", f"{place}/turns/{kwargs['number']}/requests"
        case "context":
            yield "The next request", f"{place}/context"
        case "timeline":
            yield "The turns", f"{place}/turns"
            yield "The runs of Observer and Reflector", f"{place}/cycles"
            yield "The revisions", f"{place}/revisions"
        case "settings":
            yield "The conversation and its agent", place
            yield "The state of its memory", f"{place}/memory"
            yield "The revisions, those that changed options among them", f"{place}/revisions"


def _of_memory(request: HttpRequest, place: str) -> Iterator[Call]:
    revision, other = _number(request, "rev"), _number(request, "with")
    if revision and other:
        query = urlencode({"first": other, "second": revision})
        yield "What differs", f"{place}/revisions/compare?{query}"
    at = f"?{urlencode({'revision': revision})}" if revision else ""
    yield "The lines", f"{place}/memory/lines{at}"
    yield "The revisions", f"{place}/revisions"


def _number(request: HttpRequest, name: str) -> str:
    text = request.GET.get(name, "")
    return text if text.isascii() and text.isdigit() and len(text) < 12 else ""


def _of_no_thread(page: str, resource: Resource | None) -> Iterator[Call]:
    match page:
        case "home":
            yield "The conversations", "/threads"
        case "threads":
            of = f"?{urlencode({'resource': resource.key})}" if resource else ""
            yield "The conversations", f"/threads{of}"
        case "agents" | "settings":
            yield "The agents", "/agents"


def _of_lab(lab_id: UUID) -> Iterator[Call]:
    for pane in Pane.objects.filter(lab=lab_id):
        yield f"What was said in pane {pane.letter}", f"/threads/{pane.thread_id}/messages"
        yield f"The next request of pane {pane.letter}", f"/threads/{pane.thread_id}/context"
