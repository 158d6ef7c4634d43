"""Show resources, conversations, messages and files."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from unfold.decorators import action, display

from agents.audit import note_act
from memory.models import Media, Message, Resource, Thread
from memory.services import shelve
from memory.services.asked import ask_for
from memory.services.change import Refused
from memory.services.sizes import move_to_zone

from . import acts
from .asking import ask
from .base import Rows, as_json, badge, register, short, viewer
from .labs import made_for_labs
from .transfer import exported, importing


class ResourceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Take what may be said of a resource."""

    def clean_time_zone(self) -> str:
        """Return a time zone that there is. Raises ValidationError."""
        zone = str(self.cleaned_data["time_zone"])
        if zone not in available_timezones():
            raise forms.ValidationError("There is no such time zone; write it like Europe/Berlin.")
        return zone


@register(Resource)
class ResourceAdmin(Rows):
    """Show whose memory there is; its scope is changed in the Studio, which moves memory."""

    adds = changes = True
    form = ResourceForm
    lab_rows = made_for_labs("pk")
    list_display = ("key", "name", "scope", "members_count", "threads_count", "time_zone")
    list_filter = ("scope",)
    search_fields = ("key", "name", "members__username")
    fields = ("key", "name", "time_zone", "members", "scope")
    filter_horizontal = ("members",)
    ordering = ("key",)
    actions_list = ("import_bundle",)
    actions_detail = ("export_bundle", "count", "erase")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Resource]:
        """Return resources with how many members and conversations each has."""
        return (
            super()
            .get_queryset(request)
            .annotate(
                of_members=Count("members", distinct=True),
                of_threads=Count("threads", distinct=True),
            )
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what is only shown: a key names its memory for good."""
        return ("scope",) if obj is None else ("key", "scope")

    def resource_of(self, obj: Any) -> Resource:
        """Return the resource itself."""
        found: Resource = obj
        return found

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store a resource; another time zone moves the days its memory is listed under."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if change and "time_zone" in form.changed_data:
                move_to_zone(obj.pk, ZoneInfo(form.initial["time_zone"]))

    @display(description="Members", ordering="of_members")
    def members_count(self, obj: Any) -> int:
        """Return how many members it has."""
        return int(obj.of_members)

    @display(description="Conversations", ordering="of_threads")
    def threads_count(self, obj: Any) -> int:
        """Return how many conversations it has."""
        return int(obj.of_threads)

    @action(description="Import a bundle…", url_path="import")
    def import_bundle(self, request: HttpRequest) -> HttpResponse:
        """Take in what was exported, after saying what that would do."""
        return importing(request, self.admin_site)

    @action(description="Export bundle", url_path="export")
    def export_bundle(self, request: HttpRequest, object_id: str) -> FileResponse:
        """Send all there is of a resource as one file."""
        return exported(request, get_object_or_404(Resource, pk=object_id))

    @action(description="Count anew…", url_path="count")
    def count(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Count the tokens of its memory anew."""
        resource = get_object_or_404(Resource, pk=object_id)
        return ask(request, self.admin_site, acts.counting(resource))

    @action(description="Erase…", url_path="erase")
    def erase(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Destroy a resource, once its key is typed."""
        resource = get_object_or_404(Resource, pk=object_id)
        return ask(request, self.admin_site, acts.erasing_resource(request, resource))


@register(Thread)
class ThreadAdmin(Rows):
    """Show conversations, and let their memory be worked on."""

    changes = True
    lab_rows = made_for_labs("resource")
    list_display = (
        "title_or_none",
        "resource",
        "agent",
        "last_position",
        "state",
        "last_active_at",
    )
    list_filter = ("agent", "remembers", "last_active_at", "archived_at")
    list_select_related = ("resource",)
    search_fields = ("=id", "title", "resource__key")
    ordering = ("-last_active_at",)
    actions = ("observe_all", "activate_all", "reflect_all")
    actions_detail = ("observe", "activate", "reflect", "fork", "erase")
    fields = (
        "title",
        "resource",
        "agent",
        "remembers",
        "title_pinned",
        "last_position",
        "last_active_at",
        "created_at",
        "archived_at",
        "deleted_at",
        "parent",
        "fork_position",
        "is_lab",
        "metadata",
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what is only shown: everything but the title."""
        return tuple(name for name in self.fields if name != "title")

    def resource_of(self, obj: Any) -> Resource:
        """Return whose conversation it is."""
        found: Resource = obj.resource
        return found

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Rename the conversation by the service, so that open pages hear of it."""
        shelve.rename(obj.pk, form.cleaned_data["title"])

    @display(description="Conversation", ordering="title")
    def title_or_none(self, obj: Any) -> str:
        """Return the title, or what stands for none."""
        return str(obj)

    @display(description="State")
    def state(self, obj: Any) -> Any:
        """Return whether it is deleted, archived or without memory."""
        if obj.deleted_at:
            return badge("deleted", "failed")
        if obj.archived_at:
            return badge("archived")
        return badge("remembers", "done") if obj.remembers else badge("no memory")

    def _act(self, request: HttpRequest, name: str, object_id: str) -> HttpResponse:
        thread = self._thread(object_id)
        return ask(request, self.admin_site, acts.asked(name, thread))

    def _thread(self, object_id: str) -> Thread:
        return get_object_or_404(Thread.objects.select_related("resource"), pk=object_id)

    @action(description="Observe…", url_path="observe")
    def observe(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have it observed now."""
        return self._act(request, "observe", object_id)

    @action(description="Activate…", url_path="activate")
    def activate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have what is buffered shown now."""
        return self._act(request, "activate", object_id)

    @action(description="Reflect…", url_path="reflect")
    def reflect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have its memory condensed now."""
        return self._act(request, "reflect", object_id)

    @action(description="Fork…", url_path="fork")
    def fork(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Begin a copy of it."""
        act = acts.fork_of(request, self._thread(object_id))
        return ask(request, self.admin_site, act)

    @action(description="Erase…", url_path="erase")
    def erase(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Destroy it, once its id is typed."""
        act = acts.erasing_thread(request, self._thread(object_id))
        return ask(request, self.admin_site, act)

    @admin.action(description="Observe now")
    def observe_all(self, request: HttpRequest, chosen: QuerySet[Thread]) -> None:
        """Have all of them observed in the background."""
        self._ask_all(request, "observe", chosen)

    @admin.action(description="Activate now")
    def activate_all(self, request: HttpRequest, chosen: QuerySet[Thread]) -> None:
        """Have what is buffered of all of them shown."""
        self._ask_all(request, "activate", chosen)

    @admin.action(description="Reflect now")
    def reflect_all(self, request: HttpRequest, chosen: QuerySet[Thread]) -> None:
        """Have the memory of all of them condensed in the background."""
        self._ask_all(request, "reflect", chosen)

    def _ask_all(self, request: HttpRequest, name: str, chosen: QuerySet[Thread]) -> None:
        begun, refused = 0, ""
        for thread in chosen.select_related("resource"):
            try:
                ask_for(name, thread.pk)
            except Refused as refusal:
                refused = str(refusal)
                continue
            begun += 1
            note_act(request, name, resource=thread.resource, thread=thread.pk)
        if begun:
            noun = "conversation" if begun == 1 else "conversations"
            messages.success(request, f"{name.capitalize()}: under way for {begun} {noun}.")
        if refused:
            messages.warning(request, refused)


@register(Message)
class MessageAdmin(Rows):
    """Show what was said, as it is stored."""

    lab_rows = made_for_labs("thread__resource")
    list_display = ("position", "kind", "said", "tokens", "model", "thread", "created_at")
    list_display_links = ("position", "said")
    list_filter = ("kind", "created_at")
    list_select_related = ("thread",)
    search_fields = ("text", "=thread__id")
    ordering = ("-pk",)
    fields = ("thread", "position", "kind", "model", "tokens", "created_at", "whole", "raw")
    readonly_fields = ("whole", "raw")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """Return messages with their threads' resources where one is opened."""
        found = super().get_queryset(request)
        return found if request.resolver_match is None else found.select_related("thread__resource")

    def resource_of(self, obj: Any) -> Resource:
        """Return whose message it is."""
        found: Resource = obj.thread.resource
        return found

    @display(description="Text")
    def said(self, obj: Any) -> str:
        """Return how it begins."""
        return short(obj.text) or "–"

    @display(description="Text")
    def whole(self, obj: Any) -> Any:
        """Return its searchable text."""
        return viewer(obj.text)

    @display(description="As stored")
    def raw(self, obj: Any) -> Any:
        """Return its payload."""
        return as_json(obj.payload)


@register(Media)
class MediaAdmin(Rows):
    """Show the files that messages hold."""

    list_display = ("__str__", "media_type", "size", "created_at", "used_at")
    list_filter = ("media_type", "created_at")
    search_fields = ("name", "=hash")
    ordering = ("-created_at",)
