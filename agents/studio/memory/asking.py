"""Answer who asks memory something and wants a model to put what was found into words."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.access import Right, author, require, thread_or_404
from agents.services.allow import allow_trial
from agents.services.refusal import LimitReached
from agents.studio.memory.ask import Told, ask, asks_of
from agents.studio.memory.asked import Asked
from agents.studio.memory.found import Answer, answer_of
from agents.studio.memory.reading import Reading
from agents.studio.memory.views import page_of


@require_POST
async def ask_model(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Ask the agent's model what was asked of memory, showing it what was found; store nothing."""
    reading, found, refusal = await sync_to_async(_found)(request, thread_id)
    if refusal or found is None:
        told = Told(False, ((refusal, None),), "not asked")
    else:
        told = await ask(found, model_name=asks_of(reading))
    if request.headers.get("HX-Request"):
        return render(request, "studio/memory/told.html", {"told": told})
    return await sync_to_async(page_of)(request, reading, told=told)


def _found(request: HttpRequest, thread_id: UUID) -> tuple[Reading, Answer | None, str]:
    """Return what was found, and why a model may not be asked now. Raises Http404, Forbidden."""
    thread = thread_or_404(request, thread_id)
    require(request, Right.CHAT, thread.resource)
    reading = Reading(thread, Asked.read(request.POST), timezone.now())
    found = answer_of(reading)
    if found is None or not found.count or not asks_of(reading):
        return reading, None, "Nothing was found that a model could answer from."
    try:
        allow_trial(found.asked, author=author(request))
    except LimitReached as reached:
        return reading, found, str(reached)
    return reading, found, ""
