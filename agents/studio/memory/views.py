"""Answer the memory page, its text as a file, and what is opened from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access import Right, may, resource_or_404, thread_or_404, threads_for
from agents.studio.memory.asked import Asked
from agents.studio.memory.context import KEYS, context_of
from agents.studio.memory.provenance import provenance_of
from agents.studio.memory.reading import Reading
from agents.studio.memory.reflections import home_of, reflections_of
from agents.studio.memory.threads import rows_of
from agents.studio.respond import frame, respond
from memory.models import Line, MemoryRecord, Thread
from memory.services.restore import preview
from memory.services.written import text_of

REGIONS = ("head", "revisions", "rows")
PAGE = "studio/memory/page.html"
#: How many lines can be worked on at once: their ids must fit into one form.
MOST_AT_ONCE = 500


@require_GET
def memory(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show the memory of a thread: now, at a revision, or between two."""
    thread = thread_or_404(request, thread_id)
    return page_of(request, Reading(thread, Asked.read(request.GET), timezone.now()))


@require_GET
def of_resource(request: HttpRequest, key: str) -> HttpResponse:
    """Show the memory that the threads of a resource share, or the memories they have."""
    resource = resource_or_404(request, key, lab=True)
    shared = MemoryRecord.objects.filter(
        resource=resource, scope=MemoryRecord.Scope.RESOURCE, closed_at__isnull=True
    )
    threads = threads_for(request.user, lab=True).filter(resource=resource)
    threads = threads.order_by("-last_active_at")
    newest = threads.select_related("resource").first()
    if newest is not None and shared.exists():
        reading = Reading(newest, Asked.read(request.GET), timezone.now())
        if reading.scene.is_shared:
            return page_of(request, reading)
    context = {"rows": rows_of(threads, timezone.now(), request.user)}
    watch = [f"resource:{resource.pk}"]
    return respond(
        request,
        "studio/memory/threads.html",
        context,
        page="memory",
        regions=("memories",),
        watch=watch,
        resource=resource,
    )


def page_of(
    request: HttpRequest, reading: Reading, *, status: int = 200, **more: Any
) -> HttpResponse:
    """Return the page of a memory; 410 when nothing is left of the revision asked for."""
    editable = may(request.user, Right.EDIT, reading.thread.resource)
    reading.reader = request.user
    context = context_of(reading, editable=editable, **more)
    if reading.erased and not reading.lines and status == 200:
        status = 410
    watch = [f"thread:{reading.thread.pk}"]
    watch += [f"record:{reading.record.pk}"] if reading.record else []
    return respond(
        request,
        PAGE,
        {
            **context,
            "may_ask": may(request.user, Right.CHAT, reading.thread.resource),
            "keys": KEYS,
            "most_at_once": MOST_AT_ONCE,
        },
        page="memory",
        regions=REGIONS,
        watch=watch,
        thread=reading.thread,
        status=status,
    )


@never_cache
@require_GET
def raw(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return the text of a revision as a file, as it is stored or as the agent sees it."""
    thread = thread_or_404(request, thread_id)
    reading = Reading(thread, Asked.read(request.GET), timezone.now())
    text = text_of(reading.pieces)
    answer = HttpResponse(f"{text}\n" if text else "", content_type="text/plain; charset=utf-8")
    name = f"memory-{thread.pk}-revision-{reading.number}-{reading.asked.seen}.txt"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def line_or_404(request: HttpRequest, line_id: UUID) -> Line:
    """Return a line with whose it is. Raises Http404 for one that may not be seen."""
    related = "observation__record__resource", "observation__record__thread", "observation__cycle"
    found = get_object_or_404(Line.objects.select_related(*related), pk=line_id)
    _seen(request, found.observation.record)
    return found


def record_or_404(request: HttpRequest, record_id: UUID) -> MemoryRecord:
    """Return a record with its resource. Raises Http404 for one that may not be seen."""
    rows = MemoryRecord.objects.select_related("resource", "thread")
    record = get_object_or_404(rows, pk=record_id)
    _seen(request, record)
    return record


def _seen(request: HttpRequest, record: MemoryRecord) -> None:
    """Raise Http404 unless a record's conversation, or its resource, may be seen."""
    if record.thread_id is not None:
        thread_or_404(request, record.thread_id)
    else:
        resource_or_404(request, record.resource.key, lab=True)


@require_GET
def line(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Lead to where a line stands, or last stood."""
    return redirect(provenance_of(line_or_404(request, line_id)).memory)


@never_cache
@require_GET
def sources(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Show where a line comes from."""
    found = line_or_404(request, line_id)
    thread = found.observation.thread_id or found.observation.record.thread_id
    context = {"of": provenance_of(found)}
    return _drawer(request, "sources", context, "Where this line comes from", thread)


@never_cache
@require_GET
def generations(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Show what each reflection made of the lines before it."""
    record = record_or_404(request, record_id)
    context = {"generations": reflections_of(record), "home": home_of(record)}
    return _drawer(request, "generations", context, "Generations", record.thread_id)


@never_cache
@require_GET
def restoring(request: HttpRequest, record_id: UUID, number: int) -> HttpResponse:
    """Say what restoring a revision would change, and ask."""
    record = record_or_404(request, record_id)
    if number > record.revision:
        raise Http404(f"There is no revision {number}; the latest is {record.revision}.")
    context = {"record": record, "number": number, "told": preview(record.pk, number)}
    context["editable"] = may(request.user, Right.EDIT, record.resource)
    return _drawer(request, "restore", context, f"Restore revision {number}", record.thread_id)


def _drawer(
    request: HttpRequest, name: str, context: Mapping[str, Any], title: str, thread: UUID | None
) -> HttpResponse:
    """Return a fragment for the drawer, or a page of its own that shows the same."""
    fragment = f"studio/memory/{name}.html"
    known = {**context, "title": title, "fragment": fragment}
    if request.headers.get("HX-Request"):
        return render(request, fragment, known)
    found = Thread.objects.filter(pk=thread).select_related("resource").first() if thread else None
    resource = found.resource if found else None
    around = frame(request, page="memory", thread=found, resource=resource)
    return render(request, "studio/memory/alone.html", {**around, **known})
