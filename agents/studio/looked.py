"""Answer what a page reports or its reader says: how far they have looked."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.access import author, resource_or_404, thread_or_404, threads_for
from agents.services.look import (
    look_at_all,
    look_at_all_memories,
    look_at_memory,
    look_at_thread,
)
from agents.studio.memory.reflections import home_of
from agents.studio.memory.views import record_or_404
from memory.models import MemoryRecord

LARGEST = 2**62
EVERYTHING = "*"


@require_POST
def thread(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Note how far a conversation was read; to its end, where the form does not say."""
    found = thread_or_404(request, thread_id)
    through = _number(request, "through", found.last_position)
    look_at_thread(author(request), found, through, timezone.now())
    return _answer(request, reverse("chat", args=[found.pk]))


@require_POST
def threads(request: HttpRequest) -> HttpResponse:
    """Note that nothing of the conversations listed is new any more."""
    key = request.POST.get("resource", "")
    found = threads_for(request.user)
    if key != EVERYTHING:
        found = found.filter(resource=resource_or_404(request, key))
    look_at_all(author(request), found, timezone.now())
    return _answer(request, f"{reverse('threads')}?resource={key}")


@require_POST
def memory(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Note how far a memory was looked at; all of it is seen, where the form does not say."""
    record = record_or_404(request, record_id)
    through = _number(request, "through", record.revision)
    look_at_memory(
        author(request), record, through, timezone.now(), all_seen="through" not in request.POST
    )
    return _answer(request, home_of(record))


@require_POST
def memories(request: HttpRequest, key: str) -> HttpResponse:
    """Note that nothing of a resource's memories is new any more."""
    resource = resource_or_404(request, key, lab=True)
    seen = threads_for(request.user, lab=True).filter(resource=resource)
    records = MemoryRecord.objects.filter(
        Q(thread__in=seen) | Q(resource=resource, thread__isnull=True), closed_at__isnull=True
    )
    look_at_all_memories(author(request), records, timezone.now())
    return _answer(request, reverse("memory-of", args=[key]))


def _number(request: HttpRequest, name: str, otherwise: int) -> int:
    """Return a number of the form. Raises Http404 for what is none."""
    text = request.POST.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > LARGEST:
        raise Http404
    return int(text)


def _answer(request: HttpRequest, to: str) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return redirect(to)
