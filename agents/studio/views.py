"""Answer what belongs to no page alone: the way to the newest thread, search, and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents import words
from agents.access import Right, leave_traces, may, resources_for, threads_for
from agents.studio.respond import respond
from memory.models import Line, Message, Resource, Thread, holding

#: The pages that show one thread, by their key in the navigation.
OF_A_THREAD = {"chat", "memory", "context", "timeline", "settings"}
MOST = 8
PLACES = [
    ("Home", "/"),
    ("Chat", "/chat/"),
    ("Memory", "/memory/"),
    ("Context", "/context/"),
    ("Timeline", "/timeline/"),
    ("Agents", "/agents/"),
    ("Settings", "/settings/"),
    ("Notices", "/bell/"),
    ("Tokens for the API", "/account/tokens/"),
]
#: How far back messages are searched: a search as one types must not read a whole table.
RECENT_THREADS = 50


@dataclass(frozen=True)
class Found:
    """Hold one thing a search found: what it is, where it leads, and what it says.

    ``whose`` is the resource that said it, where it is text of a conversation.
    """

    kind: str
    text: str
    href: str
    note: str = ""
    whose: int | None = None


@require_GET
def newest(request: HttpRequest, page: str) -> HttpResponse:
    """Lead to a page of the newest thread, or say that there is none."""
    thread = threads_for(request.user).order_by("-last_active_at").first()
    if thread is not None:
        return redirect(f"/{page}/{thread.pk}/")
    return respond(request, "studio/none.html", {}, page=page)


@never_cache
@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """Find pages, threads, resources, lines of memory and messages by their text."""
    text = request.GET.get("q", "").strip()[:200]
    found = [*_found(request, text)]
    leave_traces(request, (each.whose for each in found if each.whose is not None))
    return _results(request, text, found)


def _found(request: HttpRequest, text: str) -> Iterator[Found]:
    places = [*PLACES, ("Lab", "/lab/")] if may(request.user, Right.LAB) else PLACES
    yield from (Found("page", name, url) for name, url in places if text.lower() in name.lower())
    threads = threads_for(request.user).order_by("-last_active_at")
    for thread in threads.filter(holding("title", text)).select_related("resource")[:MOST]:
        yield Found("thread", str(thread), f"/chat/{thread.pk}/", thread.resource.key)
    if len(text) < 2:
        return
    for resource in _resources(request, text)[:MOST]:
        yield Found("resource", resource.name, f"/chat/?resource={resource.key}", resource.key)
    if may(request.user, Right.ADMIN):
        yield from _people(text)
    yield from _lines(request, text)
    yield from _messages(threads, text)


def _people(text: str) -> Iterator[Found]:
    people: Any = get_user_model()._default_manager
    named = people.filter(holding("username", text), is_active=True).order_by("username")
    for username in named.values_list("username", flat=True)[:MOST]:
        yield Found("view as", username, reverse("seen-as", args=[username]))


def _lines(request: HttpRequest, text: str) -> Iterator[Found]:
    lines = Line.objects.filter(
        holding("text", text),
        since__isnull=False,
        until__isnull=True,
        observation__record__closed_at__isnull=True,
        observation__record__resource__in=resources_for(request.user),
    ).order_by("-observation__place", "-pk")
    owner = "observation__record"
    shown = lines.values_list(
        "pk", "text", "observation__thread", f"{owner}__thread", f"{owner}__resource"
    )
    for key, said, thread, alone, whose in shown[:MOST]:
        if thread or alone:
            href = f"/memory/{thread or alone}/#line-{key}"
            yield Found("memory", words.first_words(said, 90), href, whose=whose)


def _messages(threads: Any, text: str) -> Iterator[Found]:
    recent = threads.values("pk")[:RECENT_THREADS]
    found = Message.objects.filter(thread__in=list(recent.values_list("pk", flat=True)))
    named = found.filter(holding("text", text)).select_related("thread")
    for message in named.order_by("-created_at")[:MOST]:
        href = f"/chat/{message.thread_id}/?from={message.position}#message-{message.position}"
        said, whose = words.first_words(_around(message.text, text), 90), message.thread.resource_id
        yield Found("message", said, href, whose=whose)


def _around(text: str, wanted: str) -> str:
    at = text.lower().find(wanted.lower())
    return text if at < 40 else "…" + text[at - 30 :]


def _resources(request: HttpRequest, text: str) -> Any:
    named = holding("name", text) | holding("key", text)
    return resources_for(request.user).filter(named).order_by("key")


@never_cache
@require_GET
def scopes(request: HttpRequest) -> HttpResponse:
    """List the resources and newest threads that a page can be shown for."""
    text = request.GET.get("q", "").strip()[:200]
    page = request.GET.get("for", "")
    page = page if page in OF_A_THREAD else "chat"
    named = holding("title", text) | holding("resource__key", text)
    threads = threads_for(request.user).filter(named).order_by("-last_active_at")
    found = [_of_resource(each) for each in _resources(request, text)[:MOST]]
    found += [_of_thread(each, page) for each in threads.select_related("resource")[: 2 * MOST]]
    return _results(request, text, found)


def _of_resource(resource: Resource) -> Found:
    return Found("resource", resource.name, f"/chat/?resource={resource.key}", resource.key)


def _of_thread(thread: Thread, page: str) -> Found:
    return Found("thread", str(thread), f"/{page}/{thread.pk}/", thread.resource.key)


def _results(request: HttpRequest, text: str, found: list[Found]) -> HttpResponse:
    context = {"found": found, "text": text, "here": request.path}
    if request.headers.get("HX-Request"):
        return render(request, "studio/found.html", context)
    context["clear"] = reverse("find")
    return respond(request, "studio/find.html", context)
