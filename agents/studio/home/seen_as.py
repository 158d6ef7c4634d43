"""Show an administrator the home page that somebody else sees, and nothing to do as them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access import Right, leave_traces, may, require, role_of
from agents.audit import note_act
from agents.studio.respond import HEADER, respond
from memory.models import Resource

from .attention import Attention
from .board import Board

REGIONS = ("attention", "running", "recent", "spent")


@never_cache
@require_GET
def seen_as(request: HttpRequest, username: str) -> HttpResponse:
    """Show what somebody sees on their home page, and leave a row of the audit that says so.

    The session stays the administrator's: what the page leads to is opened with their rights,
    and noted as theirs. Only the page is read with the eyes of the other.
    """
    require(request, Right.ADMIN)
    people: Any = get_user_model()._default_manager
    person = get_object_or_404(people.filter(is_active=True), username=username)
    board = Board(person, timezone.now())
    if HEADER not in request.headers:
        note_act(request, "view as", reason=f"As {person.get_username()}")
    leave_traces(request, [resource.pk for resource in board.resources])
    context = {
        "board": board,
        "attention": Attention(board).items,
        "may_load": False,
        "acting": Acting(person),
    }
    return respond(
        request,
        "studio/home/page.html",
        context,
        page="as",
        regions=REGIONS,
        watch=board.watch,
    )


class Acting:
    """Say whose eyes a page is seen with, and what they may do in each of their resources."""

    def __init__(self, person: Any) -> None:
        self.person = person

    @property
    def role(self) -> str:
        """Return the person's role."""
        return role_of(self.person).name.lower()

    @property
    def rights(self) -> list[tuple[str, str]]:
        """Return the name of each resource they are a member of, with their rights there."""
        resources = self.person.resources.order_by("key")
        return [(each.name, ", ".join(self._rights(each))) for each in resources]

    def _rights(self, resource: Resource) -> list[str]:
        return [right for right in Right if may(self.person, right, resource)]
