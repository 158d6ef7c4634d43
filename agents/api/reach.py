"""Find what a request is about, as far as its person may see it."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest

from agents.access import Right, author, require, resources_for, thread_or_404
from agents.audit import note_reading
from agents.models import Turn
from memory.models import Line, MemoryRecord, Thread
from memory.services.foresee import state_ahead, view_ahead
from memory.services.look import View

from .problems import Problem

FORGETFUL = "This conversation does not remember: it has no memory."
MOVING = "This memory is being changed all the time. Try again."
MOST_TRIES = 5


def thread_for(request: HttpRequest, thread_id: UUID, right: Right = Right.READ) -> Thread:
    """Return a thread its person may see and has a right to. Raises Http404, Forbidden."""
    thread = thread_or_404(request, thread_id)
    require(request, right, thread.resource)
    return thread


def record_for(
    request: HttpRequest, thread_id: UUID, right: Right = Right.READ
) -> MemoryRecord | None:
    """Return the record a thread's memory is in; None when nothing was ever remembered."""
    thread_for(request, thread_id, right)
    record = state_ahead(thread_id).record
    return None if record is None or record._state.adding else record


def memory_for(request: HttpRequest, thread_id: UUID, right: Right) -> MemoryRecord:
    """Return the record a thread's memory is in. Raises Problem when there is none yet."""
    record = record_for(request, thread_id, right)
    if record is None:
        raise Problem(409, "Nothing is remembered of this conversation yet.")
    return record


def view_for(request: HttpRequest, thread_id: UUID) -> View:
    """Return a thread and its memory as of one revision. Raises Problem."""
    thread_for(request, thread_id)
    for _ in range(MOST_TRIES):
        state = state_ahead(thread_id)
        if not state.thread.remembers:
            raise Problem(409, FORGETFUL)
        view = view_ahead(state)
        if view is not None:
            return view
    raise Problem(503, MOVING)


def line_for(request: HttpRequest, line_id: UUID, right: Right = Right.READ) -> Line:
    """Return a line with its observation and record. Raises Http404, Forbidden."""
    resources = resources_for(request.user, lab=True)
    seen = Line.objects.filter(observation__record__resource__in=resources)
    found = seen.select_related("observation__record__resource").filter(pk=line_id).first()
    if found is None:
        raise Http404
    resource = found.observation.record.resource
    if not resource.members.filter(pk=author(request).pk).exists():
        note_reading(request, resource)
    require(request, right, resource)
    return found


def turn_for(request: HttpRequest, thread_id: UUID, number: int, right: Right = Right.READ) -> Turn:
    """Return a turn of a thread. Raises Http404, Forbidden."""
    thread_for(request, thread_id, right)
    found = Turn.objects.filter(thread=thread_id, number=number).first()
    if found is None:
        raise Http404
    return found
