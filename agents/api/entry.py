"""Let requests in: by a personal token, or by the session of a page with its CSRF token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer

from agents import tokens


class Token(HttpBearer):
    """Let in whom a token stands for: ``Authorization: Bearer om_…``."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        user = tokens.user_of(token.strip())
        if user is not None:
            request.user = user
        return user


class Session(APIKeyCookie):
    """Let in who is signed in; what changes anything needs the CSRF token too."""

    param_name = "sessionid"

    def __call__(self, request: HttpRequest) -> Any:
        # Who sends a token that is no good must learn so, not act as somebody else.
        if "Authorization" in request.headers or not request.user.is_authenticated:
            return None
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        return request.user


EITHER = (Token(), Session())
