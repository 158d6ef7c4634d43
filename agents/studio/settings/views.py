"""Answer the settings pages: show options, preview a draft, store it, take it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import Right, author, may, require, thread_or_404, threads_for
from agents.models import AgentProfile
from agents.studio.respond import respond
from memory.config import Phase
from memory.services.change import Refused

from . import index, probe
from .draft import SEEN, Draft
from .effects import Effect
from .places import OfAgent, OfThread, Place

PAGE = "studio/settings/page.html"
PARTS = "studio/settings/parts.html"
PHASES: tuple[Phase, ...] = ("observer", "reflector")
BASE = "base"
CHANGED_MEANWHILE = (
    "Somebody changed these options while you were at it. What you typed is still here, marked "
    "where it differs from what holds now: look at both, then save again."
)


@never_cache
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show the places whose options can be set."""
    context = {
        "server": index.of_server(),
        "agents": index.agents(),
        "threads": index.threads(request.user),
    }
    return respond(request, "studio/settings/index.html", context, page="settings")


@require_http_methods(["GET", "POST"])
def of_thread(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show the options of the memory a conversation's is in, or store them."""
    return _options(request, _place_of_thread(request, thread_id))


@require_http_methods(["GET", "POST"])
def of_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the options of an agent, or store them."""
    return _options(request, _place_of_agent(request, slug))


@require_POST
def preview_of_thread(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show what a draft would do; nothing is stored."""
    return _preview(request, _place_of_thread(request, thread_id))


@require_POST
def preview_of_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what a draft would do; nothing is stored."""
    return _preview(request, _place_of_agent(request, slug))


@require_POST
def back_of_thread(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Go back to the options of a revision."""
    return _back(request, _place_of_thread(request, thread_id))


@require_POST
def back_of_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Go back to the options of a change."""
    return _back(request, _place_of_agent(request, slug))


@require_POST
async def try_of_thread(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Try out the models a draft names."""
    return await _test(request, await sync_to_async(_place_of_thread)(request, thread_id))


@require_POST
async def try_of_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Try out the models a draft names."""
    return await _test(request, await sync_to_async(_place_of_agent)(request, slug))


def _place_of_thread(request: HttpRequest, thread_id: UUID) -> OfThread:
    thread = thread_or_404(request, thread_id)
    if request.method == "POST":
        require(request, Right.CONFIGURE, thread.resource)
    return OfThread(thread, timezone.now())


def _place_of_agent(request: HttpRequest, slug: str) -> OfAgent:
    if request.method == "POST":
        require(request, Right.ADMIN)
    profile = get_object_or_404(AgentProfile, slug=slug)
    return OfAgent(profile, timezone.now(), threads_for(request.user))


def _options(request: HttpRequest, place: Place) -> HttpResponse:
    if request.method == "GET":
        return _page(request, place, Draft(place.layers, tools=place.tools))
    draft = Draft(place.layers, request.POST, tools=place.tools)
    if not draft.is_valid:
        return _page(request, place, draft, status=422, refusal="Nothing was saved.")
    if request.POST.get(BASE) not in (None, _base(place)):
        return _page(request, place, draft, status=409, refusal=CHANGED_MEANWHILE)
    effect = _effect(place, draft)
    if effect.any and request.POST.get(SEEN) != draft.digest:
        return _page(request, place, draft, status=422, effect=effect, refusal=_ask_first(effect))
    return _store(request, place, draft)


def _ask_first(effect: Effect) -> str:
    return f"Nothing was saved yet. {' '.join(effect.sentences)} Save again to do it."


def _store(request: HttpRequest, place: Place, draft: Draft) -> HttpResponse:
    if not draft.changes:
        messages.info(request, "Nothing was changed.")
        return redirect(place.url)
    try:
        key = place.store(draft, author=author(request), reason=request.POST.get("reason", ""))
    except Refused as refused:
        return _page(request, place, draft, status=422, refusal=str(refused))
    messages.success(request, f"Saved: {_names(draft)}. It holds from the next step on.")
    return redirect(f"{place.url}?undo={key}")


def _names(draft: Draft) -> str:
    fields = draft.layers.fields
    return ", ".join(fields[name].label if name in fields else name for name in draft.changes)


def _base(place: Place) -> str:
    return Draft(place.layers).digest


def _effect(place: Place, draft: Draft) -> Effect:
    if draft.options is None or not draft.changes:
        return Effect()
    return place.effect(draft)


def _preview(request: HttpRequest, place: Place) -> HttpResponse:
    draft = Draft(place.layers, request.POST, tools=place.tools)
    if not request.headers.get("HX-Request"):
        return _page(request, place, draft, effect=_effect(place, draft))
    context = _drafted(place, draft, _effect(place, draft))
    return render(request, f"{PARTS}#previewed", context)


def _drafted(place: Place, draft: Draft, effect: Effect) -> dict[str, Any]:
    return {
        "draft": draft,
        "effect": effect,
        "panel": place.gauges(draft.options) if draft.options else None,
        "covers": probe.covers(draft.options) if draft.options else [],
    }


def _page(
    request: HttpRequest,
    place: Place,
    draft: Draft,
    *,
    status: int = 200,
    refusal: str = "",
    effect: Effect | None = None,
) -> HttpResponse:
    thread = place.thread if isinstance(place, OfThread) else None
    context = {
        "place": place,
        "base": _base(place),
        "may_change": _may_change(request, place),
        "history": place.history(),
        "refusal": refusal,
        "undo": request.GET.get("undo", ""),
        "reason": request.POST.get("reason", ""),
        **_drafted(place, draft, effect or Effect()),
    }
    return respond(
        request,
        PAGE,
        context,
        page="settings",
        regions=("history",),
        watch=[f"thread:{thread.pk}"] if thread else [],
        thread=thread,
        status=status,
    )


def _may_change(request: HttpRequest, place: Place) -> bool:
    if isinstance(place, OfThread):
        return may(request.user, Right.CONFIGURE, place.thread.resource)
    return may(request.user, Right.ADMIN)


def _back(request: HttpRequest, place: Place) -> HttpResponse:
    try:
        place.back(request.POST.get("to", ""), author=author(request))
    except Refused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, "The options are as they were.")
    return redirect(place.url)


async def _test(request: HttpRequest, place: Place) -> HttpResponse:
    phase = _phase(request)
    names = await sync_to_async(_models)(request, place, phase)
    tried = await probe.try_all(names)
    context = {"tried": tried, "phase": phase, "place": place}
    template = (
        f"{PARTS}#tried" if request.headers.get("HX-Request") else "studio/settings/tried.html"
    )
    return await sync_to_async(render)(request, template, context)


def _phase(request: HttpRequest) -> Phase:
    for phase in PHASES:
        if request.POST.get("phase") == phase:
            return phase
    raise Http404


def _models(request: HttpRequest, place: Place, phase: Phase) -> Sequence[str]:
    """Return the models a draft names; those in force when it is wrong."""
    draft = Draft(place.layers, request.POST)
    options = draft.options or Draft(place.layers).options
    return probe.models_of(options, phase, place.actor_model) if options else []
