"""Answer what moves memory as a whole: whose it is, and whether there is any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from agents import words
from agents.access import Right, author, require, thread_or_404
from agents.page import Scene
from agents.services import remember, scope
from agents.studio.respond import respond
from memory.models import Message, Thread
from memory.services.change import Refused
from memory.services.outlook import outlook, outlook_in_scope

from .effects import effect

SCOPES = ("thread", "resource")


@require_http_methods(["GET", "POST"])
def of_scope(request: HttpRequest, thread_id: UUID, to: str) -> HttpResponse:
    """Show what another scope would do, or change it."""
    thread = _thread(request, thread_id)
    if to not in SCOPES:
        raise Http404
    if request.method == "POST":
        return _done(
            request,
            thread,
            lambda: scope.change_scope(thread.resource, to, author=author(request)),
            "The scope was changed.",
        )
    try:
        says, refusal = list(_of_scope(thread, to)), ""
    except Refused as refused:
        says, refusal = [], str(refused)
    title = "Share one memory" if to == "resource" else "Give each conversation its own memory"
    return _asked(request, thread, {"title": title, "says": says, "refusal": refusal})


def _of_scope(thread: Thread, to: str) -> Iterator[str]:
    then = outlook_in_scope(thread.pk, to)
    count = Thread.objects.there().filter(resource=thread.resource, remembers=True).count()
    many = f"{count} conversation{'' if count == 1 else 's'} of {thread.resource.name}"
    if to == "resource":
        yield f"{many} will share one memory: what is said in one is known in all."
    else:
        yield f"{many} will have a memory each: what was observed of each stays with it."
        yield "Of what was condensed from several, the lines it was made from are shown again."
    yield from effect(outlook(thread.pk), then).sentences or ("Nothing else happens at once.",)


@require_http_methods(["GET", "POST"])
def of_memory(request: HttpRequest, thread_id: UUID, to: str) -> HttpResponse:
    """Show what turning memory off or on would do, or do it."""
    thread = _thread(request, thread_id)
    if to not in ("on", "off"):
        raise Http404
    if request.method == "POST":
        return _done(
            request,
            thread,
            lambda: remember.remember(thread.pk, to == "on", author=author(request)),
            f"Memory is {to} for this conversation.",
        )
    title = f"Turn memory {to} for this conversation"
    return _asked(request, thread, {"title": title, "says": list(_of_memory(thread, to))})


def _of_memory(thread: Thread, to: str) -> Iterator[str]:
    scene = Scene(thread.pk, timezone.now())
    said = Message.objects.filter(thread=thread).aggregate(tokens=Sum("tokens"))["tokens"] or 0
    if to == "off":
        yield (
            f"From the next turn on the agent is sent the whole conversation, {words.tokens(said)} "
            "tokens, and nothing more of it is observed."
        )
        yield "What is remembered stays, and is used again when you turn memory on."
    else:
        yield (
            f"{words.tokens(scene.extent.pending_tokens)} tokens that are not observed yet count "
            "from now on."
        )


def _thread(request: HttpRequest, thread_id: UUID) -> Thread:
    thread = thread_or_404(request, thread_id)
    require(request, Right.CONFIGURE, thread.resource)
    return thread


def _asked(request: HttpRequest, thread: Thread, context: dict[str, Any]) -> HttpResponse:
    context |= {"action": request.path, "thread": thread}
    if request.headers.get("HX-Request"):
        return render(request, "studio/settings/parts.html#asked", context)
    return respond(request, "studio/settings/asked.html", context, page="settings", thread=thread)


def _done(request: HttpRequest, thread: Thread, act: Any, said: str) -> HttpResponse:
    try:
        act()
    except Refused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, said)
    return redirect("settings-thread", thread.pk)
