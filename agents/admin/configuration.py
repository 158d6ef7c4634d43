"""Show agents, labs, people, tokens and the audit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.html import format_html
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from agents import tokens
from agents.lab.models import Entry, Lab, Pane
from agents.models import (
    AgentChange,
    AgentProfile,
    AuditEntry,
    BellLook,
    MemoryLook,
    SignInFailure,
    ThreadLook,
    Token,
)

from . import acts
from .asking import Act, Done, ask
from .base import Rows, as_json, badge, register
from .labs import made_for_labs


@register(AgentProfile)
class AgentAdmin(Rows):
    """Show agents; they are edited in the Studio, which checks and keeps what they were."""

    list_display = ("name", "slug", "model_or_default", "remembers", "in_studio")
    list_filter = ("remembers",)
    search_fields = ("name", "slug", "model", "instructions")
    ordering = ("name",)
    readonly_fields = ("in_studio",)

    @display(description="Model", ordering="model")
    def model_or_default(self, obj: Any) -> str:
        """Return the model in use."""
        return str(obj.model_name)

    @display(description="Edit")
    def in_studio(self, obj: Any) -> Any:
        """Return the way to its page in the Studio."""
        return format_html('<a class="om-link" href="/agents/{}/">Edit in the Studio</a>', obj.slug)


@register(AgentChange)
class AgentChangeAdmin(Rows):
    """Show what agents were before."""

    list_display = ("agent", "__str__", "author", "created_at")
    list_select_related = ("agent", "author")
    list_filter = ("created_at",)
    ordering = ("-created_at",)
    fields = ("agent", "author", "created_at", "values")
    readonly_fields = ("values",)

    @display(description="Before and after")
    def values(self, obj: Any) -> Any:
        """Return each field's values."""
        return as_json(obj.fields)


@register(Lab)
class LabAdmin(Rows):
    """Show labs; they are wiped in the Studio."""

    list_display = ("name", "created_by", "created_at")
    list_select_related = ("created_by",)
    search_fields = ("name", "=id")
    ordering = ("-created_at",)


@register(Pane)
class PaneAdmin(Rows):
    """Show who talks where in labs."""

    list_display = ("lab", "ordinal", "person", "resource", "thread")
    list_select_related = ("lab", "person", "resource", "thread")
    ordering = ("-pk",)


@register(Entry)
class EntryAdmin(Rows):
    """Show what was done in labs."""

    list_display = ("lab", "state", "text", "created_at")
    list_select_related = ("lab",)
    list_filter = ("state",)
    ordering = ("-pk",)


# Django shows them in a look of its own.
admin.site.unregister([User, Group])


@register(User)
class UserAdmin(DjangoUserAdmin, Rows):  # type: ignore[type-arg]
    """Make accounts, and say what each may do: by the groups admins, operators and viewers."""

    adds = changes = True
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    lab_rows = made_for_labs("pk", "person")
    list_display = ("username", "first_name", "email", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    ordering = ("username",)
    actions_detail = ("erase",)

    @action(description="Erase what they said…", url_path="erase")
    def erase(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Destroy what a person said, once their name is typed."""
        person = get_object_or_404(User, pk=object_id)
        return ask(request, self.admin_site, acts.erasing_person(request, person))


@register(Group)
class GroupAdmin(DjangoGroupAdmin, Rows):
    """Name the groups that give a role."""

    adds = changes = True
    ordering = ("name",)


@register(Token)
class TokenAdmin(Rows):
    """Show who has tokens, and let them be revoked; a secret is shown to its maker alone."""

    list_display = ("name", "opening", "user", "status", "last_used_at", "expires_at")
    list_select_related = ("user",)
    list_filter = ("created_at", "revoked_at", "expires_at")
    search_fields = ("name", "opening", "user__username")
    exclude = ("hash",)
    actions_detail = ("revoke",)

    @display(description="State")
    def status(self, obj: Any) -> Any:
        """Return whether it lets its person in."""
        return badge(obj.state)

    @action(description="Revoke…", url_path="revoke")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End a token for good."""
        token = get_object_or_404(Token.objects.select_related("user"), pk=object_id)

        def carry_out(given: Any) -> Done:
            tokens.revoke(token.user, token.pk)
            return Done(f"“{token.name}” lets nobody in any more.")

        act = Act(
            name="revoke token",
            title=f"Revoke {token}",
            says=f"Every script that uses this token of {token.user} is shut out at once.",
            button="Revoke",
            carry_out=carry_out,
            back=acts.change_page(token),
        )
        return ask(request, self.admin_site, act)


@register(AuditEntry)
class AuditAdmin(Rows):
    """Show who of the staff read or did what; nobody changes it."""

    list_display = ("at", "actor_name", "did", "resource_key", "thread", "place", "reason")
    list_filter = ("action", "at")
    search_fields = ("actor_name", "resource_key", "=thread", "place", "reason")
    fields = (
        "at",
        "actor",
        "actor_name",
        "action",
        "resource_key",
        "thread",
        "place",
        "reason",
        "counted",
    )
    readonly_fields = ("counted",)

    @display(description="Action", ordering="action")
    def did(self, obj: Any) -> Any:
        """Return what was done."""
        return badge(obj.action, obj.action.partition(" ")[0])

    @display(description="In numbers")
    def counted(self, obj: Any) -> Any:
        """Return what it did, counted."""
        return as_json(obj.numbers)


@register(SignInFailure)
class SignInFailureAdmin(Rows):
    """Show how often signing in failed lately; equal hashes are one account or one address."""

    list_display = ("at", "account", "address")
    list_filter = ("at",)
    ordering = ("-at",)


class LookAdmin(Rows):
    """Show how far people have looked; it says nothing of what they read."""

    list_filter = ("at",)
    search_fields = ("user__username",)
    ordering = ("-at",)


@register(ThreadLook)
class ThreadLookAdmin(LookAdmin):
    """Show up to which message people looked at threads."""

    lab_rows = made_for_labs("thread__resource")
    list_display = ("user", "thread", "through", "at")
    list_select_related = ("user", "thread")


@register(MemoryLook)
class MemoryLookAdmin(LookAdmin):
    """Show up to which revision people looked at memories."""

    lab_rows = made_for_labs("record__resource")
    list_display = ("user", "record", "through", "since", "at")
    list_select_related = ("user", "record")


@register(BellLook)
class BellLookAdmin(LookAdmin):
    """Show when people looked at the bell."""

    list_display = ("user", "at")
    list_select_related = ("user",)
