"""Route the JSON API."""

from typing import Any

from django.urls import URLPattern, URLResolver, path

from .site import api

patterns, _, _ = api.urls
for pattern in patterns:
    # Who may come in is the API's to say, with a problem instead of a page to sign in.
    view: Any = pattern.callback
    view.login_required = False

urlpatterns: list[URLPattern | URLResolver] = [path("", (patterns, "ninja", "api"))]
