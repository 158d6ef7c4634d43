"""Answer the timeline's page, its export, and the form that forks from it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.access import Right, author, may, require, thread_or_404
from agents.services.fork import fork
from agents.studio.respond import respond
from memory.models import Thread
from memory.services.change import Refused

from .events import KINDS, Filters, in_pages
from .reading import SPEEDS, Timeline
from .rows import event_of
from .travel import NoSuchTime

KEYS = (
    ("[, ]", "the revision before, after"),
    ("←, →", "in the lanes: the event before, after; with Shift the turn or run; Home, End"),
    ("+, -", "a narrower, a wider window; <, > an earlier, a later one; 0 all"),
)
REGIONS = ("travel", "lanes", "curves", "events")


@never_cache
@require_GET
def timeline(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show what happened to a thread's memory, now or as of the moment asked for."""
    thread = thread_or_404(request, thread_id)
    shown = _timeline(request, thread)
    context = {
        "timeline": shown,
        "speeds": SPEEDS,
        "keys": KEYS,
        "may_fork": may(request.user, Right.CHAT, thread.resource),
        "window": _window(shown),
    }
    return respond(
        request,
        "studio/timeline/page.html",
        context,
        page="timeline",
        regions=REGIONS,
        watch=_watch(shown),
        thread=thread,
    )


def _timeline(request: HttpRequest, thread: Thread) -> Timeline:
    """Return the timeline that is asked for. Raises Http404 for a time it does not have."""
    zone = ZoneInfo(thread.resource.time_zone)
    page = request.GET.get("page", "")
    shown = Timeline(
        thread,
        timezone.now(),
        filters=filters_of(request, zone),
        at=request.GET.get("at", ""),
        page=int(page[:9]) if page.isascii() and page.isdigit() else None,
        query=[(name, value) for name, values in request.GET.lists() for value in values if value],
    )
    try:
        shown.moment  # noqa: B018 - a time that is not there is told at once
    except NoSuchTime:
        raise Http404("This timeline has no such time.") from None
    return shown


def _window(shown: Timeline) -> dict[str, str]:
    """Return the ends of the window as the fields of the filter take them, in whole seconds."""
    until = shown.filters.until
    if until is not None and until.microsecond:
        until = until.replace(microsecond=0) + timedelta(seconds=1)
    ends = {"since": shown.filters.since, "until": until}
    return {
        name: f"{at.astimezone(shown.zone):%Y-%m-%dT%H:%M:%S}" if at else ""
        for name, at in ends.items()
    }


def _watch(shown: Timeline) -> tuple[str, ...]:
    if shown.record is not None and shown.record.thread_id is None:
        return (f"resource:{shown.thread.resource_id}",)
    return (f"thread:{shown.thread.pk}",)


def filters_of(request: HttpRequest, zone: ZoneInfo) -> Filters:
    """Return what is asked for; what cannot be read is not asked for."""
    asked = request.GET
    try:
        least = float(asked.get("least") or 0)
        thread = UUID(asked["thread"]) if asked.get("thread") else None
    except ValueError:
        least, thread = 0.0, None
    return Filters(
        kinds=frozenset(asked.getlist("kind")) & KINDS.keys(),
        thread=thread,
        failed="failed" in asked,
        least=least if 0 < least < 10**6 else 0,
        since=_moment(asked.get("since", ""), zone),
        until=_moment(asked.get("until", ""), zone),
    )


def _moment(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    if found is None:
        return None
    return found if found.tzinfo else found.replace(tzinfo=zone)


@never_cache
@require_GET
def exported(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return the events that are asked for as lines of JSON, the newest first."""
    thread = thread_or_404(request, thread_id)
    shown = _timeline(request, thread)
    events = in_pages(shown.history.scope, shown.filters, event_of)
    lines = (json.dumps(event, cls=DjangoJSONEncoder, ensure_ascii=False) for event in events)
    response = HttpResponse(
        "".join(f"{line}\n" for line in lines), content_type="application/jsonl; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="timeline-{thread.pk.hex[-8:]}.jsonl"'
    return response


@require_POST
def forked(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Begin a conversation that goes on from a revision, and lead to it."""
    thread = thread_or_404(request, thread_id)
    require(request, Right.CHAT, thread.resource)
    number = request.POST.get("revision", "")
    try:
        travel = Timeline(thread, timezone.now(), filters=Filters(), at=number).travel
    except NoSuchTime:
        raise Http404("This timeline has no such time.") from None
    if travel is None:
        raise Http404("This timeline has no such time.")
    try:
        child = fork(
            thread.pk,
            travel.place(),
            title=request.POST.get("title", ""),
            author=author(request),
            reason=f"Forked from revision {travel.number}",
        )
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect(f"/timeline/{thread.pk}/?at={number}")
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"X-Go": f"/chat/{child.pk}/"})
    return redirect(f"/chat/{child.pk}/")
