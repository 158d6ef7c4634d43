"""Answer the forms on the chat page: what is sent, stopped, forked, asked for and discarded."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from agents import intents, uploads
from agents.access import Right, author, require, thread_or_404
from agents.audit import note_act
from agents.services import discard as discarding
from agents.services.branch import branch
from agents.services.fork import fork as fork_at
from agents.views import page_of
from memory.dispatch import OPERATIONS
from memory.models import Cycle, Thread
from memory.services import again as work
from memory.services.asked import ask_for
from memory.services.change import Refused

REFUSALS = (intents.Refused, Refused)
REMEMBERED = (
    "Only a temporary conversation is discarded at once, and something is remembered of this one. "
    "Delete it in the list of conversations, where that can be undone."
)


def _allowed(request: HttpRequest, thread_id: UUID, right: Right = Right.CHAT) -> Thread:
    """Return a thread on which something may be done. Raises Http404 or Forbidden."""
    thread = thread_or_404(request, thread_id)
    require(request, right, thread.resource)
    return thread


def _done(request: HttpRequest, thread_id: UUID, act: Callable[[], object]) -> HttpResponse:
    """Carry out what a form asked for and lead back to the conversation."""
    try:
        act()
    except REFUSALS as refusal:
        return _refused(request, thread_id, refusal)
    return _led(request, None, thread_id)


def _refused(request: HttpRequest, thread_id: UUID, refusal: Exception | str) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return _told(HttpResponse(str(refusal), content_type="text/plain; charset=utf-8"), refusal)
    messages.error(request, str(refusal))
    return redirect("chat", thread_id)


def _told(response: HttpResponse, refusal: Exception | str) -> HttpResponse:
    """Return a response with the status of a refusal, and when to try again."""
    response.status_code = 422
    if isinstance(refusal, intents.LimitReached):
        response.status_code = refusal.status
        for name, value in refusal.headers.items():
            response[name] = value
    return response


def _led(request: HttpRequest, to: str | None, thread_id: UUID) -> HttpResponse:
    """Answer what was done: a script stays where it is unless it is led elsewhere."""
    if not request.headers.get("HX-Request"):
        return redirect(to or reverse("chat", args=(thread_id,)))
    response = HttpResponse(status=204)
    if to:
        response["X-Go"] = to
    return response


@require_POST
def send(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Take a message with its files; what is refused without a script is shown to be mended.

    With ``again``, the number of a turn, it is sent in place of that turn's prompt, in a fork.
    """
    _allowed(request, thread_id)
    text = request.POST.get("text", "")
    if request.POST.get("again"):
        return _again(request, thread_id, request.POST["again"], text)
    key = _key(request.POST.get("key", ""))
    files = uploads.handed_in(request, thread_id)
    refusal: Exception | str = " ".join(files.refusals)
    if not refusal:
        try:
            intents.say(thread_id, text, key=key, author=author(request), files=files.tokens)
        except intents.Refused as reason:
            refusal = reason
    if not refusal:
        return _led(request, None, thread_id)
    if request.headers.get("HX-Request"):
        return _refused(request, thread_id, refusal)
    page = page_of(request, thread_id, text=text, files=files.kept, refusal=str(refusal))
    return _told(page, refusal)


def _key(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_POST
def stop(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Stop the answer under way."""
    _allowed(request, thread_id)
    return _done(request, thread_id, lambda: intents.stop(thread_id))


@require_POST
def withdraw(request: HttpRequest, thread_id: UUID, number: int) -> HttpResponse:
    """Take a waiting message back."""
    _allowed(request, thread_id)
    return _done(request, thread_id, lambda: intents.withdraw(thread_id, number))


@require_POST
def retry(request: HttpRequest, thread_id: UUID, number: int) -> HttpResponse:
    """Answer a message again whose turn went wrong."""
    _allowed(request, thread_id)
    return _done(
        request, thread_id, lambda: intents.retry(thread_id, number, author=author(request))
    )


@require_POST
def again(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Answer a message once more, in a fork from before it."""
    _allowed(request, thread_id)
    return _again(request, thread_id, request.POST.get("turn", ""))


def _again(
    request: HttpRequest, thread_id: UUID, number: str, text: str | None = None
) -> HttpResponse:
    try:
        child = branch(thread_id, _number(number), text=text, author=author(request))
    except REFUSALS as refusal:
        if text is None or request.headers.get("HX-Request"):
            return _refused(request, thread_id, refusal)
        page = page_of(request, thread_id, text=text, refusal=str(refusal), editing=number)
        return _told(page, refusal)
    return _led(request, f"/chat/{child.pk}/", thread_id)


@require_POST
def fork(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Begin a conversation that goes on from a message of this one."""
    _allowed(request, thread_id)
    try:
        child = fork_at(
            thread_id, _number(request.POST.get("position", "")), author=author(request)
        )
    except Refused as refusal:
        return _refused(request, thread_id, refusal)
    return _led(request, f"/chat/{child.pk}/", thread_id)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Http404
    return int(text)


@require_POST
def operate(request: HttpRequest, thread_id: UUID, operation: str) -> HttpResponse:
    """Have memory observed, buffered, activated or reflected now; its cycles show how it goes."""
    if operation not in OPERATIONS:
        raise Http404
    _allowed(request, thread_id, Right.OPERATE)
    return _done(request, thread_id, lambda: ask_for(operation, thread_id))


@require_POST
def cancel(request: HttpRequest, thread_id: UUID, cycle_id: UUID) -> HttpResponse:
    """Cancel what the Observer or the Reflector is doing; a turn that waits for it goes on."""
    thread = _allowed(request, thread_id, Right.OPERATE)
    here = Cycle.objects.filter(record__resource=thread.resource_id)
    cycle = get_object_or_404(here, pk=cycle_id)
    return _done(request, thread_id, lambda: work.cancel(cycle.pk, author=author(request)))


@require_POST
def discard(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Destroy a temporary conversation at once, and lead to the others."""
    thread = _allowed(request, thread_id, Right.EDIT)
    if not thread.is_temporary:
        return _refused(request, thread_id, REMEMBERED)
    try:
        discarding.destroy(thread_id, author=author(request), reason="Discarded.")
    except Refused:
        # An answer is being written: it is stopped, and the sweep does the rest.
        discarding.discard(thread_id)
    note_act(request, "discard", resource=thread.resource, thread=thread_id)
    return _led(request, f"{reverse('threads')}?resource={thread.resource.key}", thread_id)
