"""Let administrators in, and nobody else, under a content policy that its scripts need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_update
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from unfold.sites import UnfoldAdminSite

from agents.access import Forbidden, Right, Role, role_of

#: Alpine evaluates its attributes and sets styles; nothing outside the admin may.
POLICY = {"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]}


class StudioSite(UnfoldAdminSite):
    """Serve the admin to superusers, and to staff in the group of administrators."""

    def has_permission(self, request: HttpRequest) -> bool:
        """Tell whether somebody may enter."""
        user: Any = request.user
        return bool(
            user.is_active
            and (user.is_superuser or (user.is_staff and role_of(user) >= Role.ADMIN))
        )

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Return a view that only administrators reach, with the admin's policy."""
        inner = super().admin_view(view, cacheable)
        wrapped: Callable[..., Any] = csp_update(POLICY)(inner)
        return wrapped

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Lead to where everybody signs in; tell who is signed in already what is missing."""
        if request.user.is_authenticated:
            raise Forbidden(Right.ADMIN)
        return redirect_to_login(request.GET.get("next") or "/admin/")
