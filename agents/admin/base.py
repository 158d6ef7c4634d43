"""Say once what all pages of the admin have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents import words
from agents.audit import note_reading
from memory.models import Resource

from .labs import LabFilter, shows_labs

LONGEST_BADGE = 60


class Rows(ModelAdmin):
    """Show rows to administrators; ``adds``, ``changes`` and ``deletes`` allow more."""

    adds = changes = deletes = False
    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = False
    compressed_fields = True
    actions: Any = ()
    #: Which rows were made for labs; None where labs make none, or nobody can tell.
    lab_rows: Q | None = None

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Return what the list can be narrowed by; labs are left out where that can be told."""
        filters = super().get_list_filter(request)
        return filters if self.lab_rows is None else (LabFilter, *filters)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns, with one that marks rows of labs while these are shown."""
        columns = super().get_list_display(request)
        marks = self.lab_rows is not None and shows_labs(request)
        return (*columns, "lab") if marks else columns

    @display(description="Lab")
    def lab(self, obj: Any) -> Any:
        """Return the mark of a row that was made for a lab."""
        return badge("lab") if getattr(obj, "of_lab", False) else "–"

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Tell whether the model is listed."""
        return self.admin_site.has_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether rows may be read."""
        return self.admin_site.has_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tell whether rows may be made by hand."""
        return self.adds and self.admin_site.has_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether rows may be changed by hand."""
        return self.changes and self.admin_site.has_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether rows may be deleted by hand."""
        return self.deletes and self.admin_site.has_permission(request)

    def resource_of(self, obj: Any) -> Resource | None:
        """Return whose row it is, for the audit; None for nobody's."""
        return None

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return a row that is opened, and note it where it is another's."""
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            note_opened(request, self.resource_of(found))
        return found


def note_opened(request: HttpRequest, resource: Resource | None) -> None:
    """Note that an administrator opened what belongs to others."""
    if resource is None or resource.members.filter(pk=request.user.pk or 0).exists():
        return
    note_reading(request, resource)


def viewer(text: str) -> SafeString:
    """Return a long text in a box that scrolls, as it is."""
    return format_html('<pre class="om-text" tabindex="0">{}</pre>', text)


def as_json(value: Any) -> SafeString:
    """Return JSON in such a box."""
    return viewer(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def badge(word: str, state: str = "") -> SafeString:
    """Return a word as a badge in the colour of a state."""
    return format_html('<span class="om-badge" data-state="{}">{}</span>', state or word, word)


def link(to: str, word: object, *args: object) -> SafeString:
    """Return a link to a page of the admin by its name."""
    return format_html(
        '<a class="om-link" href="{}">{}</a>', reverse(f"admin:{to}", args=args), word
    )


def row_link(row: Model) -> SafeString:
    """Return a link to a row's own page."""
    meta = row._meta
    return link(f"{meta.app_label}_{meta.model_name}_change", str(row) or row.pk, row.pk)


def meter(value: int, limit: int) -> SafeString:
    """Return a gauge with its numbers."""
    return format_html(
        '<span class="om-gauge"><meter min="0" max="{}" value="{}"></meter> {} / {}</span>',
        max(limit, value, 1),
        value,
        words.tokens(value),
        words.tokens(limit),
    )


def short(text: str) -> str:
    """Return the beginning of a text, for a column."""
    return words.first_words(" ".join(text.split()), LONGEST_BADGE)


def ids(rows: Iterable[Model]) -> list[UUID]:
    """Return the ids of rows."""
    return [row.pk for row in rows]


register = admin.register
