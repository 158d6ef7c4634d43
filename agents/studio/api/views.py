"""Answer the pages about the API, and those where people make and revoke tokens."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import tokens as service
from agents.access import author
from agents.api.site import schema
from agents.models import Token
from agents.studio.respond import respond

from .listing import about, operations_of

LASTING = {"30": "30 days", "90": "90 days", "365": "A year", "": "For good"}


@login_not_required
@require_GET
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI description of the API."""
    return JsonResponse(schema())


@require_GET
def docs(request: HttpRequest) -> HttpResponse:
    """List every operation with a call to copy."""
    described = schema()
    origin = f"{request.scheme}://{request.get_host()}"
    context = {
        "about": mark_safe(about(described)),
        "groups": operations_of(described, origin),
        "origin": origin,
    }
    return respond(request, "studio/api/page.html", context, page="api")


@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """Show a person's tokens; make one, whose secret is shown in this answer and never again."""
    if request.method == "GET":
        return _page(request)
    given = request.POST
    try:
        made, secret = service.make(author(request), given.get("name", ""), lasts=_lasts(given))
    except service.BadToken as refusal:
        return _page(request, refusal=str(refusal), name=given.get("name", ""), status=422)
    return _page(request, made=made, secret=secret, status=201)


def _lasts(given: QueryDict) -> timedelta | None:
    days = given.get("days", "")
    if days not in LASTING:
        raise service.BadToken("Choose how long the token lasts.")
    return timedelta(days=int(days)) if days else None


def _page(request: HttpRequest, *, status: int = 200, **more: object) -> HttpResponse:
    mine = Token.objects.filter(user=author(request))
    context = {"tokens": mine, "lasting": LASTING, **more}
    return respond(request, "studio/account/page.html", context, page="account", status=status)


@require_POST
def revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """End a token for good."""
    mine = Token.objects.filter(user=author(request), pk=token_id).first()
    if mine is None:
        raise Http404
    service.revoke(author(request), token_id)
    messages.success(request, f"“{mine.name}” is revoked: nobody gets in with it any more.")
    return redirect("tokens")
