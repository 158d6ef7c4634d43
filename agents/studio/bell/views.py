"""Answer the bell: its page, its list in the drawer, its mark, and that it was looked at."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.access import author
from agents.looks import BellLook
from agents.services.look import look_at_bell
from agents.studio.hub import MOST_SCOPES
from agents.studio.respond import HEADER, respond

from .notices import Notices


def _notices(request: HttpRequest) -> Notices:
    look = BellLook.objects.filter(user=author(request)).first()
    return Notices(request.user, timezone.now(), look.at if look else None)


@never_cache
@require_GET
def bell(request: HttpRequest) -> HttpResponse:
    """Show what happened lately that matters: as a page, or as what the drawer holds."""
    context: dict[str, Any] = {"bell": _notices(request)}
    if request.headers.get("HX-Request") and HEADER not in request.headers:
        return render(request, "studio/bell/regions.html#notices", context)
    mine: Any = request.user
    keys = mine.resources.order_by("pk").values_list("pk", flat=True)[:MOST_SCOPES]
    watch = [f"resource:{key}" for key in keys]
    return respond(
        request, "studio/bell/page.html", context, page="bell", regions=("notices",), watch=watch
    )


@never_cache
@require_GET
def mark(request: HttpRequest) -> HttpResponse:
    """Return what stands in the bell of every page: how many notices are new."""
    return render(request, "studio/bell/mark.html", {"new": _notices(request).new})


@require_POST
def looked(request: HttpRequest) -> HttpResponse:
    """Note that nothing of the bell is new any more."""
    look_at_bell(author(request), timezone.now())
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return redirect("bell")
