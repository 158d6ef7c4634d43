"""Answer the page of all conversations and the forms on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Page as Slice
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.access import (
    Right,
    Role,
    author,
    leave_traces,
    may,
    require,
    resources_for,
    role_of,
    thread_or_404,
    threads_for,
)
from agents.audit import note_act
from agents.models import AgentProfile
from agents.services import discard
from agents.services.thread import start
from agents.studio.hub import MOST_SCOPES
from agents.studio.respond import respond
from memory.models import Resource, Thread
from memory.services import shelve
from memory.services.asked import ask_for
from memory.services.change import Refused

from . import export
from .fate import Fate, fates_of, phrase
from .find import MEMORY, STATES, UPDATED, VIEWS, Filters, agents_of, found
from .rows import Page, Row
from .state import REST, WORK, WRONG

PER_PAGE = 50
MOST_AT_ONCE = 200
EVERYTHING = "*"
WRITERS = {"md": export.markdown, "jsonl": export.jsonl}
SORTABLE = ("title", "messages", "activity")


@dataclass(frozen=True)
class Scope:
    """Hold whose conversations are listed: one resource's, or all that may be seen."""

    resource: Resource | None
    resources: Sequence[Resource]
    threads: QuerySet[Thread]
    sees_all: bool = False

    @property
    def key(self) -> str:
        """Return how an address names it."""
        return self.resource.key if self.resource else EVERYTHING

    @property
    def watch(self) -> tuple[str, ...]:
        """Return what a page of these must hear about."""
        if self.resource is None and self.sees_all:
            return ("everything",)
        some = [self.resource] if self.resource else self.resources[:MOST_SCOPES]
        return tuple(f"resource:{each.pk}" for each in some)


def _scope(request: HttpRequest) -> Scope:
    """Return whose conversations are asked for. Raises Http404 for what may not be seen."""
    resources = list(resources_for(request.user).order_by("key"))
    asked = request.GET.get("resource") or request.POST.get("resource") or ""
    threads = threads_for(request.user)
    if asked == EVERYTHING and may(request.user, Right.READ):
        everybody = role_of(request.user) >= Role.OPERATOR
        return Scope(None, resources, threads.filter(resource__in=resources), everybody)
    own = set(author(request).resources.values_list("pk", flat=True))
    resources.sort(key=lambda each: each.pk not in own)
    chosen = next((each for each in resources if asked in ("", each.key)), None)
    if asked and chosen is None:
        raise Http404
    return Scope(chosen, resources, threads.filter(resource=chosen) if chosen else threads.none())


@never_cache
@require_GET
def threads(request: HttpRequest) -> HttpResponse:
    """Show the conversations of one resource, with what each is at."""
    return _page(request, _scope(request))


def _page(request: HttpRequest, scope: Scope, *, status: int = 200, **more: Any) -> HttpResponse:
    now = timezone.now()
    filters = Filters.of(request.GET)
    chosen = found(scope.threads.select_related("resource"), filters, now)
    page: Slice[Thread] = Paginator(chosen, PER_PAGE).get_page(request.GET.get("page"))
    listed = Page(list(page), now, search=filters.words, reader=request.user)
    leave_traces(request, (each.resource_id for each in listed.threads if each.pk in listed.hits))
    mine, rows = scope.resource, listed.rows()
    context = {
        "scope": scope,
        "filters": filters,
        "states": STATES,
        "memories": MEMORY,
        "updates": UPDATED,
        "agents": agents_of(scope.threads),
        "profiles": _profiles(listed.threads),
        "rows": rows,
        "board": _board(rows) if filters.view else None,
        "views": [
            (name, "?" + replace(filters, view=key).query(resource=scope.key), key == filters.view)
            for key, name in VIEWS.items()
        ],
        "by": {key: _sorting(filters, scope, key) for key in SORTABLE},
        "slice": page,
        "links": _links(page, filters, scope),
        "query": filters.query(resource=scope.key),
        "may_chat": mine is not None and may(request.user, Right.CHAT, mine),
        "may_operate": may(request.user, Right.OPERATE, mine),
        "may_edit": may(request.user, Right.EDIT, mine),
        **more,
    }
    return respond(
        request,
        "studio/threads/page.html",
        context,
        page="threads",
        regions=("rows", "summary"),
        watch=scope.watch if scope.resources else (),
        resource=scope.resource,
        status=status,
    )


def _profiles(listed: Sequence[Thread]) -> list[AgentProfile]:
    """Return whom one can begin with: who talked last in these threads, then who remembers."""
    newest = max(listed, key=lambda thread: thread.last_active_at, default=None)
    last = newest and newest.agent
    profiles = [each for each in AgentProfile.objects.order_by("name") if not each.is_of_lab]
    return sorted(profiles, key=lambda each: (each.slug != last, not each.remembers))


def _board(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return rows by the column of a board that their state is in."""
    return [(name, [r for r in rows if r.state.column == name]) for name in (WORK, WRONG, REST)]


def _sorting(filters: Filters, scope: Scope, key: str) -> dict[str, str]:
    """Return where a column's header leads, and how the list is sorted by it now."""
    now = "none"
    if filters.column == key:
        now = "descending" if filters.descending else "ascending"
    return {"link": "?" + filters.sorted_by(key).query(resource=scope.key), "now": now}


def _links(page: Slice[Thread], filters: Filters, scope: Scope) -> dict[str, str]:
    links = {}
    if page.has_previous():
        links["newer"] = "?" + filters.query(resource=scope.key, page=page.previous_page_number())
    if page.has_next():
        links["older"] = "?" + filters.query(resource=scope.key, page=page.next_page_number())
    return links


@require_POST
def new_thread(request: HttpRequest) -> HttpResponse:
    """Begin a conversation and lead to it; a temporary one is never remembered."""
    resource = get_object_or_404(resources_for(request.user), key=request.POST.get("resource", ""))
    require(request, Right.CHAT, resource)
    agent = get_object_or_404(AgentProfile, slug=request.POST.get("agent", ""))
    thread = start(resource, agent, temporary=bool(request.POST.get("temporary")))
    return redirect("chat", thread.pk)


def _allowed(request: HttpRequest, thread_id: UUID, right: Right) -> Thread:
    thread = thread_or_404(request, thread_id)
    require(request, right, thread.resource)
    return thread


def _done(request: HttpRequest, act: Callable[[], object], toast: str = "") -> HttpResponse:
    """Carry out what a form asked for; say why where it is refused."""
    scripted = bool(request.headers.get("HX-Request"))
    try:
        act()
    except Refused as refusal:
        if scripted:
            return _refused(request, str(refusal))
        messages.error(request, str(refusal))
        toast = ""
    return _answer(request, toast)


def _refused(request: HttpRequest, sentence: str) -> HttpResponse:
    return render(request, "studio/threads/refused.html", {"sentence": sentence}, status=422)


def _answer(request: HttpRequest, toast: str = "", undo: str = "", to: str = "") -> HttpResponse:
    """Answer a script with a toast, anybody else with the page they came from."""
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=204)
        response["X-Toast"] = quote(toast)
        if undo:
            response["X-Undo"] = undo
        return response
    return redirect(to or _back(request))


def _back(request: HttpRequest) -> str:
    asked = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(asked, {request.get_host()}, request.is_secure())
    return asked if safe else reverse("threads")


@require_POST
def rename(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Give a conversation a title that stays."""
    thread = _allowed(request, thread_id, Right.EDIT)
    return _done(request, lambda: shelve.rename(thread.pk, request.POST.get("title", "")))


@never_cache
@require_GET
def exported(request: HttpRequest, thread_id: UUID, extension: str) -> HttpResponse:
    """Send a conversation as a file."""
    if extension not in WRITERS:
        raise Http404
    return _file([thread_or_404(request, thread_id)], extension)


def _file(chosen: Sequence[Thread], extension: str) -> HttpResponse:
    write = WRITERS[extension]
    now = timezone.now()
    pieces = (piece for thread in chosen for piece in write(thread, now))
    kind = "text/markdown" if extension == "md" else "application/jsonl"
    # Short enough to be made whole; a file that ends in the middle of an error helps nobody.
    response = HttpResponse("".join(pieces), content_type=f"{kind}; charset=utf-8")
    name = export.filename(chosen[0], extension)
    if len(chosen) > 1:
        name = f"{len(chosen)}-conversations.{extension}"
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return response


# ---- several at once


def _chosen(request: HttpRequest) -> list[Thread]:
    """Return the conversations that were ticked, those that may be seen alone."""
    seen = threads_for(request.user, lab=True).select_related("resource")
    chosen = list(
        seen.filter(pk__in=_ids(request.POST.getlist("thread"))).order_by("-last_active_at", "-id")
    )
    leave_traces(request, (thread.resource_id for thread in chosen))
    return chosen


def _ids(texts: Sequence[str]) -> list[UUID]:
    """Return the ids that texts name. Raises Http404 when one names none."""
    try:
        return [UUID(text) for text in dict.fromkeys(texts[:MOST_AT_ONCE])]
    except ValueError:
        raise Http404 from None


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Do one thing to all conversations that were ticked."""
    chosen = _chosen(request)
    if not chosen:
        return _done(request, lambda: _refuse("Tick at least one conversation first."))
    action = request.POST.get("action", "")
    if action in WRITERS:
        return _file(chosen, action)
    act = _ACTIONS.get(action)
    if act is None:
        raise Http404
    right = Right.OPERATE if action == "observe" else Right.EDIT
    for resource in {thread.resource for thread in chosen}:
        require(request, right, resource)
    return act(request, chosen)


def _refuse(sentence: str) -> None:
    raise Refused(sentence)


def _observe(request: HttpRequest, chosen: Sequence[Thread]) -> HttpResponse:
    asked, why = 0, ""
    for thread in chosen:
        try:
            ask_for("observe", thread.pk)
            asked += 1
        except Refused as refusal:
            why = str(refusal)
    if not asked:
        return _done(request, lambda: _refuse(why))
    return _answer(request, f"Observing {_counted(asked)}.")


def _each(act: Callable[[UUID], object], word: str) -> Callable[..., HttpResponse]:
    def carry_out(request: HttpRequest, chosen: Sequence[Thread]) -> HttpResponse:
        for thread in chosen:
            act(thread.pk)
        return _answer(request, f"{word} {_counted(len(chosen))}.")

    return carry_out


def _counted(count: int) -> str:
    return f"{count} conversation{'' if count == 1 else 's'}"


def _delete(request: HttpRequest, chosen: Sequence[Thread]) -> HttpResponse:
    """Hide conversations so that it can be undone; ask first when others would lose by it."""
    fates = fates_of(chosen)
    shared = [fate for fate in fates if fate.shared]
    if shared:
        if request.POST.get("typed", "").strip() != phrase(fates):
            return _ask(request, fates, tried="typed" in request.POST)
        return _erase(request, chosen)
    for thread in chosen:
        discard.discard(thread.pk)
        note_act(request, "delete", resource=thread.resource, thread=thread.pk)
    undo = reverse("undo") + "?" + urlencode([("thread", each.pk) for each in chosen])
    return _answer(request, f"Deleted {_counted(len(chosen))}.", undo)


def _ask(request: HttpRequest, fates: Sequence[Fate], *, tried: bool) -> HttpResponse:
    context = {"fates": fates, "phrase": phrase(fates), "tried": tried, "next": _back(request)}
    if request.headers.get("HX-Request"):
        return render(request, "studio/threads/confirm.html", context, status=422)
    return _page(request, _scope(request), status=422, asking=context)


def _erase(request: HttpRequest, chosen: Iterable[Thread]) -> HttpResponse:
    erased = 0
    try:
        for thread in chosen:
            discard.destroy(thread.pk, author=author(request), reason="Deleted by a person.")
            note_act(request, "erase", resource=thread.resource, thread=thread.pk)
            erased += 1
    except Refused as refusal:
        sentence = str(refusal)
        return _done(request, lambda: _refuse(sentence))
    return _answer(request, f"Erased {_counted(erased)}.")


_ACTIONS: dict[str, Callable[..., HttpResponse]] = {
    "observe": _observe,
    "archive": _each(shelve.archive, "Archived"),
    "unarchive": _each(shelve.unarchive, "Took back from the archive"),
    "delete": _delete,
}


@require_POST
def undo(request: HttpRequest) -> HttpResponse:
    """Bring deleted conversations back that the sweep has not erased yet."""
    ids = _ids(request.GET.getlist("thread"))
    mine = Thread.objects.filter(resource__in=resources_for(request.user, lab=True), pk__in=ids)
    gone = len(ids)
    for thread in mine.select_related("resource"):
        require(request, Right.EDIT, thread.resource)
        gone -= discard.bring_back(thread.pk)
    if gone:
        return _done(request, lambda: _refuse("Some of these are erased for good already."))
    return _answer(request, f"Brought back {_counted(len(ids))}.")
