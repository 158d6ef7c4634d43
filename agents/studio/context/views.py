"""Answer the context pages: the next request, those that were sent, and the calls of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from pydantic_ai.messages import ModelMessage

from agents import words
from agents.access import leave_trace, resources_for, thread_or_404, threads_for
from agents.studio.context.ahead import NEXT, Ahead
from agents.studio.context.asked import Asked, read, refusals
from agents.studio.context.calls import Call
from agents.studio.context.differ import prefix
from agents.studio.context.inspected import Inspected
from agents.studio.context.page import (
    KEYS,
    ahead_context,
    compared,
    latest_of,
    next_json,
    sent_context,
    strip_of,
    zone_of,
)
from agents.studio.context.raw import as_python, download, entries
from agents.studio.context.rows import share
from agents.studio.context.sent import Sent, inspected_of, snapshot_of
from agents.studio.context.where import Search
from agents.studio.respond import respond
from memory.models import Cycle, Thread

PAGE = "studio/context/page.html"
MOST_RAW = 200
MOST_ELSEWHERE = 40
MOST_DIGITS = 9
LONGEST_SEARCH = 200


@require_GET
def ahead(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show the next request of a thread, as it is or as something is supposed."""
    thread = thread_or_404(request, thread_id)
    now, asked = timezone.now(), read(request.GET)
    place = _place(request, thread, asked)
    found = Ahead(place, now, asked)
    wrong = list(refusals(found.state, asked)) if asked.supposes or asked.wrong else []
    if wrong:
        found = Ahead(thread, now, Asked(draft=asked.draft, typed=asked.typed))
    supposes = asked.supposes and not wrong
    plain = Ahead(thread, now, Asked(draft=asked.draft)) if supposes else None
    found.note()
    text = request.GET.get("where", "").strip()[:LONGEST_SEARCH]
    others = threads_for(request.user, lab=thread.is_lab)
    context = ahead_context(
        thread, found, opened=_opened(request), plain=plain, place=place if supposes else None
    )
    context |= {
        "wrong": wrong,
        "where": text,
        "hits": Search(found, text, others).hits if text else [],
        "elsewhere": _elsewhere(others, thread, asked),
        "supposing": bool(supposes or wrong or "suppose" in request.GET),
    }
    return _page(request, thread, context, watch=_watch(place, found), status=422 if wrong else 200)


def _place(request: HttpRequest, thread: Thread, asked: Asked) -> Thread:
    """Return the conversation a request is supposed to be sent in, with the same rights as any."""
    if asked.elsewhere is None or asked.elsewhere == thread.pk:
        return thread
    return thread_or_404(request, asked.elsewhere)


def _elsewhere(threads: QuerySet[Thread], thread: Thread, asked: Asked) -> list[dict[str, Any]]:
    """Return the conversations that a draft can be supposed to be sent in, the newest first."""
    others = threads.exclude(pk=thread.pk).select_related("resource").order_by("-last_active_at")
    found = {each.pk: each for each in others[:MOST_ELSEWHERE]}
    if asked.elsewhere is not None and asked.elsewhere not in found:
        found |= {each.pk: each for each in others.filter(pk=asked.elsewhere)}
    return [
        {"id": pk, "name": f"{each.resource.key} › {each}", "on": pk == asked.elsewhere}
        for pk, each in found.items()
    ]


def _opened(request: HttpRequest) -> Sequence[str]:
    return [name for each in request.GET.getlist("open") for name in each.split(",") if name]


def _watch(thread: Thread, found: Ahead) -> list[str]:
    record = found.state.record
    scopes = [f"thread:{thread.pk}"]
    if record is not None and not record._state.adding and record.thread_id is None:
        scopes.append(f"record:{record.pk}")
    return scopes


def _page(
    request: HttpRequest,
    thread: Thread,
    context: dict[str, Any],
    *,
    watch: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    return respond(
        request,
        PAGE,
        context,
        page="context",
        regions=("shown",),
        watch=watch,
        thread=thread,
        status=status,
    )


@require_GET
def sent(
    request: HttpRequest, thread_id: UUID, number: int, step: int | None = None
) -> HttpResponse:
    """Show a request that was sent: the last of a turn, or that of a step."""
    thread = thread_or_404(request, thread_id)
    asked = request.GET.get("step", "")
    if step is None and asked.isdecimal() and len(asked) < MOST_DIGITS:
        step = int(asked)
    found = Sent(snapshot_of(thread.pk, number, step))
    return _page(request, thread, sent_context(thread, found, opened=_opened(request)))


def _asked_for(thread: Thread, key: str, request: HttpRequest) -> tuple[Inspected, Ahead | None]:
    """Return the request that a key names: next, a turn, or a turn and its step. Raises Http404."""
    if key in ("", NEXT):
        asked = read(request.GET)
        found = Ahead(_place(request, thread, asked), timezone.now(), asked)
        if list(refusals(found.state, found.asked)):
            raise Http404("What is supposed cannot be.")
        return found.inspected, found
    turn, _, step = key.partition(".")
    if not all(each.isdecimal() and len(each) < MOST_DIGITS for each in (turn, step or "1")):
        raise Http404("There is no such request.")
    return inspected_of(snapshot_of(thread.pk, int(turn), int(step) if step else None)), None


@require_GET
def compare(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show how two requests of a thread differ, by block and then by line."""
    thread = thread_or_404(request, thread_id)
    latest = latest_of(thread)
    keys = [request.GET.get(name, "") for name in ("a", "b")]
    (old, _), (new, _) = (_asked_for(thread, key, request) for key in keys)
    shared = prefix(old, new)
    context = {
        "strip": strip_of(thread, latest, "", zone_of(thread)),
        "old": old,
        "new": new,
        "blocks": compared(old, new),
        "shared": shared,
        "shared_share": share(shared.tokens, new.total),
        "shared_width": words.percent(shared.tokens, new.total),
        "keys": KEYS,
    }
    return respond(request, "studio/context/compare.html", context, page="context", thread=thread)


def _entries(
    request: HttpRequest, thread: Thread, *, most: int | None = None
) -> tuple[Inspected, Ahead | None, list[Any]]:
    inspected, found = _asked_for(thread, request.GET.get("of", NEXT), request)
    draft: ModelMessage | None = found.foreseen.prompt.message if found is not None else None
    place = found.thread_id if found is not None else thread.pk
    listed = entries(place, inspected, draft, most=most)
    return inspected, found, [each.without_secrets for each in listed]


@require_GET
def raw(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show a request as pydantic-ai sends it."""
    thread = thread_or_404(request, thread_id)
    inspected, _, found = _entries(request, thread, most=MOST_RAW)
    context = {
        "inspected": inspected,
        "entries": found,
        "hidden": len(inspected.said) - sum(each.position is not None for each in found),
        "query": request.GET.urlencode(),
        "keys": KEYS,
    }
    return respond(request, "studio/context/raw.html", context, page="context", thread=thread)


@never_cache
@require_GET
def raw_json(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return a request as a JSON file."""
    thread = thread_or_404(request, thread_id)
    inspected, found, listed = _entries(request, thread)
    more = {"window": inspected.window, "foreseen": found is not None}
    response = JsonResponse(
        download(thread.pk, inspected, listed, **more),
        json_dumps_params={"indent": 2, "ensure_ascii": False},
    )
    name = f"request-{inspected.key}.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@never_cache
@require_GET
def raw_python(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return a request as Python that builds it with pydantic-ai."""
    thread = thread_or_404(request, thread_id)
    inspected, _, listed = _entries(request, thread)
    return HttpResponse(as_python(inspected, listed), content_type="text/plain; charset=utf-8")


@never_cache
@require_POST
def ahead_json(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return the next request in numbers, for the composer.

    A draft may be longer than an address, and is not for the logs of servers on the way.
    """
    thread = thread_or_404(request, thread_id)
    found = Ahead(thread, timezone.now(), Asked(draft=read(request.POST).draft))
    found.note()
    return JsonResponse(next_json(found))


@require_GET
def call(request: HttpRequest, cycle_id: UUID) -> HttpResponse:
    """Show one call of an Observer or a Reflector."""
    cycles = Cycle.objects.select_related("record__resource", "thread__resource")
    seen = resources_for(request.user, lab=True)
    cycle = get_object_or_404(cycles, pk=cycle_id, record__resource__in=seen)
    leave_trace(request, cycle.record.resource)
    thread = thread_or_404(request, cycle.thread_id) if cycle.thread_id else None
    context = {"call": Call(cycle), "cycle": cycle, "keys": KEYS}
    return respond(
        request,
        "studio/context/call.html",
        context,
        page="context",
        regions=("asked",),
        watch=[f"record:{cycle.record_id}"],
        thread=thread,
        resource=cycle.record.resource,
    )
