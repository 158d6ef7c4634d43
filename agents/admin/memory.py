"""Show records, lines, observations, revisions, cursors and what reflections were made from."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from unfold.decorators import action, display
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from agents.access import author
from agents.models import AgentProfile
from memory.config import in_force
from memory.models import (
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
)
from memory.services.change import LONGEST_REASON, LONGEST_TEXT, Refused, Stale
from memory.services.edit import edit

from . import acts
from .asking import ask
from .base import Rows, badge, link, meter, note_opened, register, row_link, short, viewer
from .labs import made_for_labs
from .record import page_of


@register(MemoryRecord)
class RecordAdmin(Rows):
    """Show memories, each with its lines, revisions and what waits."""

    lab_rows = made_for_labs("resource")
    list_display = (
        "name",
        "scope",
        "revision",
        "generation",
        "observations",
        "work",
        "open_or_closed",
    )
    list_filter = ("scope", "generation", "created_at", "closed_at")
    list_select_related = ("resource", "thread")
    search_fields = ("=id", "thread__title", "resource__key", "=thread__id")
    ordering = ("-created_at",)
    actions_detail = ("reconcile", "clear")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryRecord]:
        """Return records with the size of what each shows, and what works on it."""
        latest = Revision.objects.filter(record=OuterRef("pk"), number=OuterRef("revision"))
        agent = AgentProfile.objects.filter(slug=OuterRef("thread__agent"))
        running = Q(cycles__status=Cycle.Status.RUNNING)
        failed = Q(cycles__status=Cycle.Status.FAILED)
        found = super().get_queryset(request)
        return found.annotate(
            of_lines=Coalesce(
                Subquery(latest.values("tokens_after")), 0, output_field=IntegerField()
            ),
            of_agent=Subquery(agent.values("memory_options")),
            of_running=Count("cycles", filter=running, distinct=True),
            of_failed=Count("cycles", filter=failed, distinct=True),
        )

    def resource_of(self, obj: Any) -> Resource:
        """Return whose memory it is."""
        found: Resource = obj.resource
        return found

    @display(description="Memory of")
    def name(self, obj: Any) -> str:
        """Return the conversation or the resource it is of."""
        return str(obj.thread or obj.resource)

    @display(description="Observations", ordering="of_lines")
    def observations(self, obj: Any) -> Any:
        """Return how full it is."""
        try:
            slug = obj.thread.agent if obj.thread else ""
            options = in_force(slug, obj.of_agent or {}, obj.config)
        except ValueError:
            return f"{obj.of_lines:,} · options that do not hold"
        return meter(obj.of_lines, options.thresholds().reflect)

    @display(description="Cycles")
    def work(self, obj: Any) -> Any:
        """Return how many cycles run and how many failed."""
        if obj.of_running:
            return badge(f"{obj.of_running} running", "running")
        return badge(f"{obj.of_failed} failed", "failed") if obj.of_failed else "–"

    @display(description="State")
    def open_or_closed(self, obj: Any) -> Any:
        """Return whether it is in use."""
        return badge("closed") if obj.closed_at else badge("open", "done")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a record's own page: an overview, lines, revisions, what is buffered, raw JSON."""
        rows = MemoryRecord.objects.select_related("resource", "thread")
        record = get_object_or_404(rows, pk=object_id)
        note_opened(request, record.resource)
        page = page_of(record, request.GET.get("tab", ""), request.GET.get("from", ""))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Memory of {record.thread or record.resource}",
            "opts": self.opts,
            "record": record,
            "page": page,
        }
        return TemplateResponse(request, f"admin/record/{page.tab}.html", context)

    @action(description="Reconcile cursors…", url_path="reconcile")
    def reconcile(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Put its cursors where its observations say they are."""
        rows = MemoryRecord.objects.select_related("resource", "thread")
        record = get_object_or_404(rows, pk=object_id)
        return ask(request, self.admin_site, acts.reconciling(record))

    @action(description="Clear…", url_path="clear")
    def clear(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take everything out of sight, once a part of its id is typed."""
        rows = MemoryRecord.objects.select_related("resource")
        record = get_object_or_404(rows, pk=object_id)
        return ask(request, self.admin_site, acts.clearing(request, record))


class LineForm(forms.Form):
    """Take what a line is to say, and at which revision that was decided."""

    text = forms.CharField(max_length=LONGEST_TEXT, widget=UnfoldAdminTextareaWidget)
    kind = forms.ChoiceField(choices=Line.Kind.choices, widget=UnfoldAdminSelectWidget)
    reason = forms.CharField(
        label="Reason, for the history",
        max_length=LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget,
        help_text="Every change of memory says why.",
    )
    expected = forms.IntegerField(widget=forms.HiddenInput)


@register(Line)
class LineAdmin(Rows):
    """Show lines, and let their text be changed by the service of everybody."""

    lab_rows = made_for_labs("observation__record__resource")
    list_display = ("said", "kind", "tokens", "pinned", "visible", "record", "since", "until")
    list_filter = ("kind", "pinned", "said_at")
    list_select_related = ("observation__record__thread", "observation__record__resource")
    search_fields = ("text", "=id", "=observation__record__id")
    ordering = ("-pk",)
    actions_detail = ("erase",)

    @display(description="Text")
    def said(self, obj: Any) -> str:
        """Return how it begins."""
        return short(obj.text)

    @display(description="Memory")
    def record(self, obj: Any) -> Any:
        """Return the record it is in."""
        record = obj.observation.record
        return link("memory_memoryrecord_change", record.thread or record.resource, record.pk)

    @display(description="State")
    def visible(self, obj: Any) -> Any:
        """Return whether the agent sees it now."""
        if obj.since is None:
            return badge("buffered")
        return badge("ended") if obj.until is not None else badge("visible", "done")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a line; take a change of it, with a reason, at the revision it was seen at."""
        rows = Line.objects.select_related(
            "observation__record__thread", "observation__record__resource", "observation__cycle"
        )
        line = get_object_or_404(rows, pk=object_id)
        note_opened(request, line.observation.record.resource)
        if request.method == "POST":
            return self._changed(request, line)
        now = {
            "text": line.text,
            "kind": line.kind,
            "expected": line.observation.record.revision,
        }
        return self._page(request, line, LineForm(initial=now))

    def _changed(self, request: HttpRequest, line: Line) -> HttpResponse:
        form = LineForm(request.POST)
        if not form.is_valid():
            return self._page(request, line, form, status=422)
        try:
            new = edit(line.pk, author=author(request), **form.cleaned_data)
        except Stale as stale:
            return self._page(request, line, form, stale=stale, status=409)
        except Refused as refusal:
            form.add_error(None, str(refusal))
            return self._page(request, line, form, status=422)
        messages.success(request, f"Revision {new.since}: the line says it now.")
        return HttpResponseRedirect(acts.change_page(new))

    def _page(
        self,
        request: HttpRequest,
        line: Line,
        form: LineForm,
        *,
        stale: Stale | None = None,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Line of memory",
            "opts": self.opts,
            "line": line,
            "record": line.observation.record,
            "form": form,
            "stale": stale,
            "editable": line.since is not None and line.until is None,
            "versions": list(Line.objects.filter(Q(replaces=line) | Q(pk=line.replaces_id))),
        }
        return TemplateResponse(request, "admin/line.html", context, status=status)

    @action(description="Erase…", url_path="erase")
    def erase(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Destroy a line, once a part of its id is typed."""
        rows = Line.objects.select_related("observation__record__resource")
        line = get_object_or_404(rows, pk=object_id)
        return ask(request, self.admin_site, acts.erasing_line(request, line))


class OfRecord(Rows):
    """Show rows of a record."""

    lab_rows = made_for_labs("record__resource")
    list_select_related: Any = ("record__thread", "record__resource", "thread")

    def resource_of(self, obj: Any) -> Resource:
        """Return whose memory it is of."""
        found: Resource = obj.record.resource
        return found

    @display(description="Memory")
    def memory(self, obj: Any) -> Any:
        """Return the record it is of."""
        record = obj.record
        return link("memory_memoryrecord_change", record.thread or record.resource, record.pk)


@register(Observation)
class ObservationAdmin(OfRecord):
    """Show what Observers, Reflectors and people wrote."""

    list_display = ("__str__", "kind", "state", "tokens", "message_tokens", "generation", "memory")
    list_filter = ("kind", "generation")
    search_fields = ("=id", "=record__id", "lines__text")
    ordering = ("-pk",)
    readonly_fields = ("said",)

    @display(description="State")
    def state(self, obj: Any) -> Any:
        """Return whether it is shown, waits, or was given up."""
        if obj.discarded_at:
            return badge("discarded")
        return badge("buffered") if obj.since is None else badge(f"since {obj.since}", "done")

    @display(description="Lines")
    def said(self, obj: Any) -> Any:
        """Return all that its lines say, in every version."""
        lines = obj.lines.order_by("ordinal", "since")[:500]
        return viewer("\n".join(f"{line.kind:6} {line.text}" for line in lines))


@register(Revision)
class RevisionAdmin(OfRecord):
    """Show every change of a memory, and let it go back to one."""

    list_display = ("number", "caused_by", "author", "memory", "change", "reason", "created_at")
    list_filter = ("cause", "created_at")
    list_select_related = ("record__thread", "record__resource", "author")
    search_fields = ("=record__id", "reason", "author__username")
    ordering = ("-pk",)
    actions_detail = ("restore",)

    @display(description="Cause", ordering="cause")
    def caused_by(self, obj: Any) -> Any:
        """Return why memory changed."""
        return badge(obj.cause)

    @display(description="Tokens")
    def change(self, obj: Any) -> str:
        """Return by how much it grew or shrank."""
        return f"{obj.tokens_after - obj.tokens_before:+,} → {obj.tokens_after:,}"

    @action(description="Restore…", url_path="restore")
    def restore(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Go back to what was visible at it."""
        rows = Revision.objects.select_related("record__resource")
        revision = get_object_or_404(rows, pk=object_id)
        return ask(request, self.admin_site, acts.restoring(request, revision))


@register(Cursor)
class CursorAdmin(OfRecord):
    """Show how far each conversation is buffered and observed."""

    list_display = ("thread", "observed_through", "buffered_through", "memory")
    search_fields = ("=record__id", "=thread__id", "thread__title")
    ordering = ("-pk",)


@register(ReflectionSource)
class SourceAdmin(Rows):
    """Show what reflections were made from."""

    lab_rows = made_for_labs("reflection__record__resource")
    list_display = ("made", "source")
    list_select_related = ("reflection", "observation")
    search_fields = ("=reflection__id", "=observation__id")
    ordering = ("-pk",)

    def resource_of(self, obj: Any) -> Resource:
        """Return whose memory it is of."""
        found: Resource = obj.reflection.record.resource
        return found

    @display(description="Reflection")
    def made(self, obj: Any) -> Any:
        """Return the reflection."""
        return row_link(obj.reflection)

    @display(description="Made from")
    def source(self, obj: Any) -> Any:
        """Return one of its sources."""
        return row_link(obj.observation)
