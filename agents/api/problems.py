"""Answer what cannot be done with a problem (RFC 9457): a status, a title and a sentence."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from agents.away import RETRY_SECONDS, SENTENCE, is_away
from agents.services.send import BadPrompt, LimitReached
from memory.models import Thread
from memory.services.change import Refused, Stale

logger = logging.getLogger(__name__)

NOT_THERE = "There is nothing here that you may see. Check the address and whose token you send."
NO_ENTRY = (
    "Send a personal token that is valid, as in: Authorization: Bearer om_… "
    "You make one at /account/tokens/."
)
FAILED = "Something went wrong here. It is in the server's log."


class Problem(Exception):
    """Say with a status and in a sentence why a request is not carried out."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more


def answer(status: int, detail: str, **more: Any) -> JsonResponse:
    """Return a problem as an answer."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
    }
    response = JsonResponse(body, status=status, content_type="application/problem+json")
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="omsite"'
    return response


def _problem(request: HttpRequest, error: Problem) -> JsonResponse:
    return answer(error.status, error.detail, **error.more)


def _limited(request: HttpRequest, error: LimitReached) -> JsonResponse:
    response = answer(error.status, str(error), **error.facts)
    for name, value in error.headers.items():
        response[name] = value
    return response


def _stale(request: HttpRequest, error: Stale) -> JsonResponse:
    current = None if error.current is None else str(error.current.pk)
    return answer(409, str(error), yours=error.yours, theirs=error.theirs, current=current)


def _invalid(request: HttpRequest, error: ValidationError) -> JsonResponse:
    errors = [
        {"at": ".".join(str(step) for step in each["loc"]), "message": each["msg"]}
        for each in error.errors
    ]
    first = errors[0] if errors else {"at": "request", "message": "is not valid"}
    return answer(422, f"{first['at']}: {first['message']}.", errors=errors)


def away() -> JsonResponse:
    """Return the answer while the database is away."""
    response = answer(503, SENTENCE)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _failed(request: HttpRequest, error: Exception) -> JsonResponse:
    if is_away(error):
        return away()
    logger.error("%s %s failed.", request.method, request.path, exc_info=error)
    return answer(500, FAILED)


def handle(api: NinjaAPI) -> None:
    """Let an API answer every error with a problem."""
    found: dict[type[Exception], Any] = {
        Exception: _failed,
        Problem: _problem,
        Stale: _stale,
        ValidationError: _invalid,
        Refused: lambda request, error: answer(422, str(error)),
        LimitReached: _limited,
        BadPrompt: lambda request, error: answer(422, str(error)),
        Http404: lambda request, error: answer(404, NOT_THERE),
        Thread.DoesNotExist: lambda request, error: answer(404, NOT_THERE),
        PermissionDenied: lambda request, error: answer(403, str(error)),
        AuthenticationError: lambda request, error: answer(401, NO_ENTRY),
        HttpError: lambda request, error: answer(error.status_code, f"{error}."),
    }
    for kind, handler in found.items():
        api.add_exception_handler(kind, handler)
