"""Answer requests that failed: a database that is away is no mistake of the server."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import server_error

from agents.api import problems
from agents.away import RETRY_SECONDS, SENTENCE, is_away

API = "/api/"


def failed(request: HttpRequest) -> HttpResponse:
    """Answer 503 while the database is away, else 500; called while the error is handled."""
    if not is_away(sys.exception()):
        return server_error(request)
    if request.path.startswith(API):
        return problems.away()
    if request.headers.get("HX-Request"):
        response = HttpResponse(SENTENCE, status=503, content_type="text/plain; charset=utf-8")
    else:
        # Without the request: who is signed in cannot be asked now.
        context = {
            "request": {"COOKIES": request.COOKIES},
            "sentence": SENTENCE,
            "sending": request.method == "POST",
        }
        response = render(None, "503.html", context, status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response
