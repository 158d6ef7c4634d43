"""Answer the agents' pages: list them, describe them, try them out."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import Forbidden, Right, author, may, require, resources_for, threads_for
from agents.models import AgentProfile
from agents.services import describe
from agents.services.allow import allow_trial
from agents.services.refusal import LimitReached
from agents.studio.respond import respond
from agents.studio.settings import history
from memory.models import Thread

from . import sheet as sheets
from . import trial
from .sheet import Sheet

PAGE = "studio/agents/page.html"


@never_cache
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show all agents."""
    cards = sheets.cards(threads_for(request.user))
    context = {"cards": cards, "may_change": may(request.user, Right.ADMIN)}
    return respond(request, "studio/agents/index.html", context, page="agents")


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show an empty form, or create the agent it describes."""
    require(request, Right.ADMIN)
    if request.method == "GET":
        blank = AgentProfile(remembers=True, tools=["current_time"])
        return _page(request, Sheet(blank, is_new=True))
    sheet = sheets.typed(request.POST)
    try:
        profile = describe.create(
            sheets.fields_of(sheet),
            slug=sheet.profile.slug,
            author=author(request),
        )
    except describe.BadAgent as bad:
        sheet.wrong = bad.wrong
        return _page(request, sheet, status=422)
    messages.success(request, f"{profile.name} can be talked to from now on.")
    return redirect("agent", profile.slug)


@require_http_methods(["GET", "POST"])
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an agent, or change it."""
    profile = get_object_or_404(AgentProfile, slug=slug)
    if request.method == "GET":
        return _page(request, Sheet(profile))
    require(request, Right.ADMIN)
    sheet = sheets.typed(request.POST, profile)
    try:
        describe.change(slug, sheets.fields_of(sheet), author=author(request))
    except describe.BadAgent as bad:
        sheet.wrong = bad.wrong
        return _page(request, sheet, status=422)
    messages.success(request, "Saved. It holds from the next turn on.")
    return redirect("agent", slug)


def _page(request: HttpRequest, sheet: Sheet, *, status: int = 200, **more: object) -> HttpResponse:
    profile = sheet.profile
    name = profile.model_name
    context = {
        "sheet": sheet,
        "agent": profile,
        "may_change": may(request.user, Right.ADMIN),
        "may_try": may(request.user, Right.ADMIN) or author(request).resources.exists(),
        "problem": "" if "model" in sheet.wrong else sheets.unavailable(name),
        "memory": sheets.memory_in_words(profile),
        "threads": 0 if sheet.is_new else Thread.objects.filter(agent=profile.slug).count(),
        "changes": [] if sheet.is_new else history.of_fields(profile.slug, timezone.now()),
        **more,
    }
    return respond(request, PAGE, context, page="agents", status=status)


@require_POST
def copy(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a copy of an agent and lead to it."""
    require(request, Right.ADMIN)
    get_object_or_404(AgentProfile, slug=slug)
    try:
        made = describe.copy(slug, author=author(request))
    except describe.BadAgent as refused:
        messages.error(request, f"It cannot be copied as it is. {refused}")
        return redirect("agent", slug)
    messages.success(request, "This is the copy.")
    return redirect("agent", made.slug)


@require_POST
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Remove an agent that no conversation has."""
    require(request, Right.ADMIN)
    profile = get_object_or_404(AgentProfile, slug=slug)
    try:
        describe.remove(slug)
    except describe.InUse as refused:
        return _page(request, Sheet(profile), status=409, refusal=str(refused))
    messages.success(request, f"{profile.name} was removed.")
    return redirect("agents")


@require_POST
async def try_out(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Ask the agent of the form one thing; nothing is stored."""
    sheet, zone = await sync_to_async(_asked)(request, slug)
    refusal = await sync_to_async(_refusal)(request)
    if refusal:
        found = trial.Trial(False, refusal, "not asked")
    else:
        found = await trial.ask(sheet.profile, request.POST.get("prompt", ""), zone=zone)
    if request.headers.get("HX-Request"):
        return await sync_to_async(render)(
            request, "studio/agents/parts.html#trial", {"trial": found}
        )
    return await sync_to_async(_page)(
        request, sheet, trial=found, prompt=request.POST.get("prompt", "")
    )


def _refusal(request: HttpRequest) -> str:
    """Return why the agent may not be asked now, as in a conversation; empty when it may."""
    try:
        allow_trial(request.POST.get("prompt", ""), author=author(request))
    except LimitReached as reached:
        return str(reached)
    return ""


def _asked(request: HttpRequest, slug: str) -> tuple[Sheet, ZoneInfo]:
    profile = get_object_or_404(AgentProfile, slug=slug) if slug else None
    if profile is None or not may(request.user, Right.ADMIN):
        # Who may not change an agent tries it as it is.
        require(request, Right.CHAT if profile else Right.ADMIN)
    resource = resources_for(request.user).filter(members=author(request)).first()
    if resource is None and not may(request.user, Right.ADMIN):
        raise Forbidden(Right.CHAT)  # Who may talk nowhere is answered nowhere.
    zone = ZoneInfo(resource.time_zone if resource else "UTC")
    if profile is not None and "instructions" not in request.POST:
        return Sheet(profile), zone
    require(request, Right.ADMIN)
    return sheets.typed(request.POST, profile), zone
