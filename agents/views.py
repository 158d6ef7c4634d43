"""Answer the chat page and the forms on it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import get_template
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents import intents, live
from agents.log import log_of
from agents.models import AgentProfile, Turn
from agents.page import Scene, threads_of
from agents.services.send import LONGEST_PROMPT
from agents.services.thread import start
from memory.models import Resource, Thread

BACKEND = "django.contrib.auth.backends.ModelBackend"
LARGEST_POSITION = 2**62


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when pages can be served: the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """Let a person in: by one click where the server is theirs alone, else by password."""
    target = _next(request)
    demo = _demo_users(request)
    form = AuthenticationForm(request)
    if request.method == "POST" and "demo" in request.POST:
        user = next((u for u in demo if u.get_username() == request.POST["demo"]), None)
        if user is not None:
            login(request, user, backend=BACKEND)
            return redirect(target)
    elif request.method == "POST":
        form = AuthenticationForm(request, data=request.POST)
        if form.is_valid():
            login(request, form.get_user())
            return redirect(target)
    status = 422 if request.method == "POST" else 200
    context = {"form": form, "demo_users": demo, "next": target}
    return render(request, "sign_in.html", context, status=status)


def _next(request: HttpRequest) -> str:
    asked = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(asked, {request.get_host()}, request.is_secure())
    return asked if safe else "/"


def _demo_users(request: HttpRequest) -> list[Any]:
    """Return who can be signed in by one click: only embedded, and only from this machine."""
    if not (settings.EMBEDDED and _from_here(request)):
        return []
    users = get_user_model().objects.filter(username__in=settings.DEMO_USERS, is_active=True)
    return list(users.order_by("username"))


def _from_here(request: HttpRequest) -> bool:
    # Behind a proxy every request comes from this machine: then nobody is let in unasked.
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("sign-in")


def home(request: HttpRequest) -> HttpResponse:
    """Lead to the newest conversation, or to the empty page."""
    newest = Thread.objects.of(request.user).filter(is_lab=False).order_by("-last_active_at")  # type: ignore[arg-type]
    thread = newest.first()
    return redirect("chat", thread.pk) if thread else redirect("threads")


@require_GET
def threads(request: HttpRequest) -> HttpResponse:
    """Show the conversations of one resource."""
    resources = _resources(request)
    asked = request.GET.get("resource")
    resource = next((each for each in resources if asked in (None, each.key)), None)
    if asked and resource is None:
        raise Http404
    rows = live.thread_rows(threads_of(resource.pk), timezone.now()) if resource else []
    context = {
        "resource": resource,
        "resources": resources,
        "agents": _agents(),
        "threads": rows,
        "refusal": _refusal(request),
    }
    return render(request, "chat/none.html", context)


def _resources(request: HttpRequest) -> list[Resource]:
    return list(Resource.objects.filter(members=request.user).order_by("key"))  # type: ignore[misc]


def _agents() -> list[AgentProfile]:
    return list(AgentProfile.objects.order_by("name"))


def _refusal(request: HttpRequest) -> str:
    return " ".join(str(message) for message in messages.get_messages(request))


@require_POST
def new_thread(request: HttpRequest) -> HttpResponse:
    """Begin a conversation and lead to it."""
    mine = Resource.objects.filter(members=request.user)  # type: ignore[misc]
    resource = get_object_or_404(mine, key=request.POST.get("resource", ""))
    agent = get_object_or_404(AgentProfile, slug=request.POST.get("agent", ""))
    thread = start(resource, agent)
    return redirect("chat", thread.pk)


def _thread(request: HttpRequest, thread_id: UUID) -> Thread:
    """Return a thread of the user's. Raises Http404 for anybody else's and for unknown ones."""
    return get_object_or_404(Thread.objects.of(request.user), pk=thread_id)  # type: ignore[arg-type]


@never_cache
@require_GET
def chat(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show a conversation and its live memory."""
    thread = _thread(request, thread_id)
    now = timezone.now()
    resources = _resources(request)
    regions = live.render(thread_id, live.NAMES, now=now)
    profiles = _agents()
    context = {
        "thread": thread,
        "title": str(thread),
        "now": now.isoformat(),
        "regions": {name: _safe(each.html) for name, each in regions.items()},
        "earlier": _earlier(thread_id, _position(request, "from")),
        "pending": _is_pending(thread_id),
        "resource": next(each for each in resources if each.pk == thread.resource_id),
        "resources": resources,
        "agents": profiles,
        "agent_name": next((a.name for a in profiles if a.slug == thread.agent), "the agent"),
        "key": uuid4(),
        "longest": LONGEST_PROMPT,
        "refusal": _refusal(request),
    }
    return render(request, "chat/page.html", context)


def _safe(html: str) -> str:
    return mark_safe(html)


def _is_pending(thread_id: UUID) -> bool:
    open_ones = [Turn.Status.WAITING, Turn.Status.RUNNING]
    return Turn.objects.filter(thread=thread_id, status__in=open_ones).exists()


def _position(request: HttpRequest, name: str) -> int | None:
    """Return a position asked for, None when there is none. Raises Http404 when it is not one."""
    text = request.GET.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text[:20]) > LARGEST_POSITION:
        raise Http404
    return int(text)


def _earlier(
    thread_id: UUID, first: int | None, before: int | None = None
) -> dict[str, Any] | None:
    """Return the entries from a position up to where the page's own log begins."""
    if first is None:
        return None
    now = timezone.now()
    if before is None:
        before = Scene(thread_id, now).first
    log = log_of(Scene(thread_id, now, start=first), before=before)
    html = get_template("chat/earlier.html").render({"log": log})
    return {"html": _safe(html), "first": first, "before": before, "mark": log.mark}


@never_cache
@require_GET
def earlier(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return older entries of a log, as a partial that takes its place above the newer ones."""
    _thread(request, thread_id)
    first, before = _position(request, "from"), _position(request, "before")
    shown = _earlier(thread_id, first or 1, before)
    return render(request, "chat/earlier.html#block", {"earlier": shown})


@never_cache
@require_GET
def regions(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return the regions whose etags differ from those in the query, as partials.

    With ``only`` (names by comma) just these are looked at.
    """
    _thread(request, thread_id)
    only = request.GET.get("only")
    names = set(only.split(",")) & set(live.NAMES) if only else set(live.NAMES)
    rendered = live.render(thread_id, names, now=timezone.now())
    differing = (r for name, r in rendered.items() if request.GET.get(name) != r.etag)
    return HttpResponse("".join(each.partial for each in differing))


def _done(request: HttpRequest, thread_id: UUID, act: Callable[[], object]) -> HttpResponse:
    """Carry out what a form asked for and lead back to the conversation."""
    _thread(request, thread_id)
    scripted = bool(request.headers.get("HX-Request"))
    try:
        act()
    except intents.Refused as refusal:
        if scripted:
            return HttpResponse(str(refusal), status=422, content_type="text/plain")
        messages.error(request, str(refusal))
    return HttpResponse(status=204) if scripted else redirect("chat", thread_id)


@require_POST
def send(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Take a message."""
    text = request.POST.get("text", "")
    key = _key(request.POST.get("key", ""))
    return _done(
        request,
        thread_id,
        lambda: intents.say(thread_id, text, key=key, author=request.user),
    )


def _key(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_POST
def stop(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Stop the answer under way."""
    return _done(request, thread_id, lambda: intents.stop(thread_id))


@require_POST
def withdraw(request: HttpRequest, thread_id: UUID, number: int) -> HttpResponse:
    """Take a waiting message back."""
    return _done(request, thread_id, lambda: intents.withdraw(thread_id, number))


@require_POST
def retry(request: HttpRequest, thread_id: UUID, number: int) -> HttpResponse:
    """Answer a message again whose turn went wrong."""
    return _done(request, thread_id, lambda: intents.retry(thread_id, number, author=request.user))
