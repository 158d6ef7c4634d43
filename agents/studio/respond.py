"""Answer a page of the Studio: whole, or only those of its regions that changed.

A region is a named partial in the page's ``regions.html``, rendered from rows, whose root
element carries its name as id and a digest of its HTML as ``data-etag``. One view serves both
the page and its updates: a page that hears that something moved asks for its own address
again and says which digests it shows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import get_template
from django.utils import timezone
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.safestring import mark_safe

from agents.access import Right, may, role_of
from agents.live import Rendered, rendered
from memory.models import Resource, Thread

HEADER = "X-Regions"


def respond(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    page: str = "",
    regions: Sequence[str] = (),
    watch: Collection[str] = (),
    thread: Thread | None = None,
    resource: Resource | None = None,
    status: int = 200,
) -> HttpResponse:
    """Return a page, or the partials of its regions that differ from what the browser shows.

    ``page`` names its place in the navigation, ``watch`` what it must hear about: ``thread:ID``,
    ``record:ID``, ``resource:KEY NUMBER`` or ``everything``.
    """
    known = frame(request, page=page, thread=thread, resource=resource, watch=watch) | dict(context)
    source = f"{template.rpartition('/')[0]}/regions.html"
    parts = [rendered(f"{source}#{name}", name, known, request) for name in regions]
    if HEADER in request.headers:
        response = HttpResponse(_changed(parts, request.headers[HEADER]))
    else:
        known["regions"] = {each.name: mark_safe(each.html) for each in parts}
        response = HttpResponse(get_template(template).render(known, request), status=status)
    add_never_cache_headers(response)
    patch_vary_headers(response, [HEADER, "HX-Request"])
    return response


def frame(
    request: HttpRequest,
    *,
    page: str,
    thread: Thread | None = None,
    resource: Resource | None = None,
    watch: Collection[str] = (),
) -> dict[str, Any]:
    """Return what the frame around every page needs: its place, its scope, and the rights there."""
    resource = resource or (thread.resource if thread else None)
    return {
        "page": page,
        "thread": thread,
        "resource": resource,
        "watch": ",".join(watch),
        "now": timezone.now(),
        "role": role_of(request.user).name.lower(),
        "rights": {right.name.lower(): may(request.user, right, resource) for right in Right},
    }


def _changed(parts: Sequence[Rendered], shown: str) -> str:
    etags = _etags(shown)
    return "".join(each.partial for each in parts if etags.get(each.name) != each.etag)


def _etags(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
