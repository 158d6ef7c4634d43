"""Say who may see and do what: four roles, the rights they have, and where they end.

A *viewer* reads the memory of the resources they are a member of; a *user* also talks there and
changes it; an *operator* reads everything, tends memory and tries it out in the lab; an
*admin* may do all of it anywhere. What somebody may not see does not exist for them (404);
what they may see but not do is refused with the name of the missing right (403).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from agents.audit import note_reading
from memory.models import Resource, Thread
from memory.models.thread import ThreadQuerySet

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Role(IntEnum):
    """Name what a person is, each role with the rights of those before it."""

    VIEWER = 1
    USER = 2
    OPERATOR = 3
    ADMIN = 4


class Right(StrEnum):
    """Name what can be allowed."""

    READ = "read"
    CHAT = "chat"
    EDIT = "edit memory"
    OPERATE = "run the Observer and the Reflector"
    CONFIGURE = "change options"
    LAB = "use the lab"
    ERASE = "erase data"
    ADMIN = "administer"


#: The groups that give a role; who is in none is a user.
GROUPS = {"admins": Role.ADMIN, "operators": Role.OPERATOR, "viewers": Role.VIEWER}

#: From which role on a right holds: in the resources one is a member of, and in all others.
LEAST: dict[Right, tuple[Role, Role]] = {
    Right.READ: (Role.VIEWER, Role.OPERATOR),
    Right.CHAT: (Role.USER, Role.ADMIN),
    Right.EDIT: (Role.USER, Role.ADMIN),
    Right.OPERATE: (Role.USER, Role.OPERATOR),
    Right.CONFIGURE: (Role.USER, Role.ADMIN),
    Right.LAB: (Role.OPERATOR, Role.OPERATOR),
    Right.ERASE: (Role.ADMIN, Role.ADMIN),
    Right.ADMIN: (Role.ADMIN, Role.ADMIN),
}


class Forbidden(PermissionDenied):
    """Tell which right somebody lacks."""

    def __init__(self, right: Right) -> None:
        super().__init__(f"Your account has no right to {right}. An administrator can give it.")
        self.right = right


def author(request: HttpRequest) -> User:
    """Return whose request it is: the middleware lets in only who is signed in."""
    return cast("User", request.user)


def role_of(user: Any) -> Role:
    """Return a person's role; the highest of their groups, with one statement per request."""
    if user.is_superuser:
        return Role.ADMIN
    kept: Role | None = getattr(user, "_role", None)
    if kept is None:
        names = user.groups.filter(name__in=GROUPS).values_list("name", flat=True)
        kept = user._role = max((GROUPS[name] for name in names), default=Role.USER)
    return kept


def resources_for(user: Any, *, lab: bool = False) -> QuerySet[Resource]:
    """Select the resources a person may see; those made for a lab only when ``lab`` is asked for.

    What lists, counts or searches leaves labs out; what is asked for by its id takes them in,
    since the pages of a lab lead there.
    """
    chosen = Resource.objects.all() if lab else Resource.objects.filter(lab_panes=None)
    if role_of(user) >= LEAST[Right.READ][1]:
        return chosen
    return chosen.filter(members=user)


def threads_for(user: Any, *, lab: bool = False) -> ThreadQuerySet:
    """Select the threads a person may see, deleted ones left out; labs as in resources_for."""
    chosen = Thread.objects.there() if lab else Thread.objects.there().filter(is_lab=False)
    if role_of(user) >= LEAST[Right.READ][1]:
        return chosen
    return chosen.filter(resource__members=user)


def may(user: Any, right: Right, resource: Resource | int | None = None) -> bool:
    """Tell whether a person has a right: in a resource, or where any of theirs could be."""
    own, others = LEAST[right]
    role = role_of(user)
    if role >= others:
        return True
    return role >= own and (resource is None or _is_member(user, resource))


def _is_member(user: Any, resource: Resource | int) -> bool:
    key = resource if isinstance(resource, int) else resource.pk
    kept: set[int] | None = getattr(user, "_member_of", None)
    if kept is None:
        kept = user._member_of = set(user.resources.values_list("pk", flat=True))
    return key in kept


def require(request: HttpRequest, right: Right, resource: Resource | int | None = None) -> None:
    """Raise Forbidden unless whoever asks has a right."""
    if not may(request.user, right, resource):
        raise Forbidden(right)


def thread_or_404(request: HttpRequest, thread_id: UUID) -> Thread:
    """Return a thread with its resource. Raises Http404 for one that may not be seen."""
    seen = threads_for(request.user, lab=True).select_related("resource")
    thread = get_object_or_404(seen, pk=thread_id)
    leave_trace(request, thread.resource)
    return thread


def resource_or_404(request: HttpRequest, key: str, *, lab: bool = False) -> Resource:
    """Return a resource by its key. Raises Http404 for one that may not be seen."""
    resource = get_object_or_404(resources_for(request.user, lab=lab), key=key)
    leave_trace(request, resource)
    return resource


def leave_trace(request: HttpRequest, resource: Resource) -> None:
    """Note that one of the staff opens what is not theirs."""
    staff = role_of(request.user) >= LEAST[Right.READ][1]
    if staff and not _is_member(request.user, resource):
        note_reading(request, resource)


def leave_traces(request: HttpRequest, resources: Iterable[int]) -> None:
    """Note that one of the staff is shown text of several resources."""
    if role_of(request.user) >= LEAST[Right.READ][1]:
        for resource in Resource.objects.filter(pk__in=set(resources)):
            leave_trace(request, resource)
