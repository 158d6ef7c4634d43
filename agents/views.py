"""Answer the chat page and the forms on it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import get_template
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents import live, uploads, words
from agents.access import thread_or_404
from agents.addresses import address_of
from agents.allowed import allowed, rights_of
from agents.log import log_of
from agents.looks import first_news
from agents.models import AgentProfile, Turn
from agents.page import Scene
from agents.services import sign_in as sign_ins
from agents.services.attach import TYPES
from agents.studio.respond import frame

BACKEND = "django.contrib.auth.backends.ModelBackend"
LARGEST_POSITION = 2**62
#: What the live memory panel consists of.
PANEL = ("gauges", "operations", "chunks", "others", "task", "observations", "generations")
KEYS = [
    ("Enter", "send; Shift+Enter starts a new line"),
    ("Ctrl+.", "stop the answer"),
    ("F6", "next region; Shift+F6 the one before"),
    ("/", "to the message box"),
    ("↑", "in the empty message box: change your last message"),
    ("F2", "rename the conversation"),
    ("j", "next entry of the conversation; k the one before"),
    ("b", "show or hide the memory panel"),
    ("n", "to “New thread”"),
]


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
        try:
            if _is_right(request, form):
                login(request, form.get_user())
                return redirect(target)
        except sign_ins.Throttled as throttled:
            return _throttled(request, throttled, demo, target)
    status = 422 if request.method == "POST" else 200
    context = {"form": form, "demo_users": demo, "next": target}
    return render(request, "sign_in.html", context, status=status)


def _is_right(request: HttpRequest, form: AuthenticationForm) -> bool:
    """Tell whether a name and its password belong together. Raises Throttled."""
    name, password = (request.POST.get(field, "") for field in ("username", "password"))
    if not name.strip() or not password:
        return False
    attempt = sign_ins.begin(name, address_of(request))
    if form.is_valid():
        sign_ins.succeed(attempt)
    return form.is_valid()


def _throttled(
    request: HttpRequest, throttled: sign_ins.Throttled, demo: list[Any], target: str
) -> HttpResponse:
    context = {"throttled": str(throttled), "demo_users": demo, "next": target}
    response = render(request, "sign_in.html", context, status=429)
    response["Retry-After"] = str(throttled.retry_after)
    return response


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


def _refusal(request: HttpRequest) -> str:
    return " ".join(str(message) for message in messages.get_messages(request))


@never_cache
@require_GET
def chat(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show a conversation and its live memory."""
    return page_of(request, thread_id)


def page_of(
    request: HttpRequest,
    thread_id: UUID,
    *,
    text: str = "",
    files: Sequence[uploads.KeptFile] = (),
    refusal: str = "",
    editing: str = "",
) -> HttpResponse:
    """Return the chat page, with what was typed and attached and why it was not taken.

    ``editing`` is the number of the turn whose prompt the text was to replace.
    """
    thread = thread_or_404(request, thread_id)
    now = timezone.now()
    regions = live.render(thread_id, live.NAMES, now=now)
    rights = rights_of(request.user, thread.resource)
    edited = _editing(request, thread_id, editing)
    profiles = list(AgentProfile.objects.order_by("name"))
    context = {
        **frame(request, page="chat", thread=thread),
        "title": str(thread),
        "keys": KEYS,
        "regions": {name: _safe(allowed(each.html, rights)) for name, each in regions.items()},
        "earlier": _earlier(thread_id, rights, _position(request, "from")),
        "news": _news(request, thread_id),
        "pending": _is_pending(thread_id),
        "agents": [profile for profile in profiles if not profile.is_of_lab],
        "agent_name": next((a.name for a in profiles if a.slug == thread.agent), "the agent"),
        "key": uuid4(),
        "longest": settings.MESSAGE_CHARACTERS,
        "refusal": refusal or _refusal(request),
        "text": text or edited.prompt if edited else text,
        "editing": edited,
        "files": files,
        "limits": _limits(),
    }
    return render(request, "chat/page.html", context, status=422 if refusal else 200)


def _news(request: HttpRequest, thread_id: UUID) -> dict[str, int]:
    """Return where begins what is new to whoever asks, and how much it is.

    A link that leads there says so itself: by then the page has been looked at.
    """
    first, count = first_news(request.user, thread_id)
    return {"first": first or _position(request, "new") or 0, "count": count}


def _editing(request: HttpRequest, thread_id: UUID, refused: str = "") -> Turn | None:
    """Return the turn whose prompt is to be sent anew, if one is, or was to be."""
    number = int(refused) if refused else _position(request, "edit")
    if number is None:
        return None
    return Turn.objects.filter(thread=thread_id, number=number, first_position__gt=0).first()


def _limits() -> dict[str, Any]:
    return {
        "count": settings.ATTACHMENTS_PER_MESSAGE,
        "bytes": settings.ATTACHMENT_BYTES,
        "words": words.filesize(settings.ATTACHMENT_BYTES),
        "types": ",".join(sorted(TYPES)) + ",.md,.markdown",
    }


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
    thread_id: UUID, rights: frozenset[str], first: int | None, before: int | None = None
) -> dict[str, Any] | None:
    """Return entries from a position on, at most up to where the page's own log begins."""
    if first is None:
        return None
    now = timezone.now()
    if before is None:
        before = Scene(thread_id, now).first
    log = log_of(Scene(thread_id, now, start=first), before=before)
    html = allowed(get_template("chat/earlier.html").render({"log": log}), rights)
    # Those that do not reach the page's own log do not change when that moves on.
    end = "" if log.newer_from else before
    return {"html": _safe(html), "first": first, "before": end, "mark": log.mark}


@never_cache
@require_GET
def earlier(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return older entries of a log, as a partial that takes its place above the newer ones."""
    thread = thread_or_404(request, thread_id)
    rights = rights_of(request.user, thread.resource)
    first, before = _position(request, "from"), _position(request, "before")
    shown = _earlier(thread_id, rights, first or 1, before)
    return render(request, "chat/earlier.html#block", {"earlier": shown})


@never_cache
@require_GET
def panel(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Show the live memory of a conversation alone, for a window of its own."""
    thread = thread_or_404(request, thread_id)
    shown = live.render(thread_id, PANEL, now=timezone.now())
    rights = rights_of(request.user, thread.resource)
    context = {
        **frame(request, page="chat", thread=thread),
        "title": str(thread),
        "regions": {name: _safe(allowed(each.html, rights)) for name, each in shown.items()},
    }
    return render(request, "chat/panel.html", context)


@never_cache
@require_GET
def regions(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Return the regions whose etags differ from those in the query, as partials.

    With ``only`` (names by comma) just these are looked at.
    """
    thread = thread_or_404(request, thread_id)
    only = request.GET.get("only")
    names = set(only.split(",")) & set(live.NAMES) if only else set(live.NAMES)
    rendered = live.render(thread_id, names, now=timezone.now())
    differing = (r for name, r in rendered.items() if request.GET.get(name) != r.etag)
    rights = rights_of(request.user, thread.resource)
    return HttpResponse(allowed("".join(each.partial for each in differing), rights))
