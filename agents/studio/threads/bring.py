"""Answer the form that brings conversations back from the JSON Lines of an export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from agents.access import Right, require, resources_for
from agents.audit import note_act
from agents.models import AgentProfile
from agents.services.bring_in import bring_in
from memory.models import Resource, Thread

from .exports import BadExport, Conversation, read

LARGEST = 5 * 1024 * 1024


@require_POST
def imported(request: HttpRequest) -> HttpResponse:
    """Begin the conversations of a file in a resource: all of them, or none and say why."""
    resource = get_object_or_404(resources_for(request.user), key=request.POST.get("resource", ""))
    require(request, Right.CHAT, resource)
    try:
        found = read(_file(request))
        profiles = [_agent(each, request.POST.get("agent", "")) for each in found]
    except BadExport as error:
        return _refused(request, resource, str(error))
    threads = _begun(request, resource, list(zip(found, profiles, strict=True)))
    messages.info(request, _said(found))
    to = reverse("chat", args=[threads[0].pk]) if len(threads) == 1 else _list_of(resource)
    if request.headers.get("HX-Request"):
        # A script that followed a redirect would read the message before the person does.
        return HttpResponse(status=204, headers={"X-Go": to})
    return redirect(to)


def _file(request: HttpRequest) -> UploadedFile[Any]:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        raise BadExport(0, "Choose a file first.")
    if (file.size or 0) > LARGEST:
        raise BadExport(0, f"The file is larger than {LARGEST // 1024**2} MB.")
    return file


def _agent(conversation: Conversation, chosen: str) -> AgentProfile:
    slug = chosen or conversation.agent
    profile = AgentProfile.objects.filter(slug=slug).first()
    if profile is None or profile.is_of_lab:
        said = f"there is no agent {slug[:60]!r} here; choose the one that is to answer."
        raise BadExport(conversation.number, said)
    return profile


@transaction.atomic
def _begun(
    request: HttpRequest, resource: Resource, wanted: Sequence[tuple[Conversation, AgentProfile]]
) -> list[Thread]:
    threads = []
    for each, profile in wanted:
        temporary = not each.remembers
        thread = bring_in(resource, profile, each.messages, title=each.title, temporary=temporary)
        numbers = {"messages": len(each.messages)}
        note_act(request, "import", resource=resource, thread=thread.pk, numbers=numbers)
        threads.append(thread)
    return threads


def _said(found: Sequence[Conversation]) -> str:
    """Return what was brought, and what was not."""
    count = sum(len(each.messages) for each in found)
    lines = sum(each.lines for each in found)
    what = "1 conversation" if len(found) == 1 else f"{len(found)} conversations"
    said = f"Imported {what} with {count} message{'' if count == 1 else 's'}."
    if lines:
        said += f" Memory observes them anew: {lines} exported line{'' if lines == 1 else 's'} of "
        said += "memory stayed behind."
    return said


def _refused(request: HttpRequest, resource: Resource, sentence: str) -> HttpResponse:
    sentence = f"{sentence} Nothing was imported."
    if request.headers.get("HX-Request"):
        context = {"sentence": sentence}
        return render(request, "studio/threads/refused.html", context, status=422)
    messages.error(request, sentence)
    return redirect(_list_of(resource))


def _list_of(resource: Resource) -> str:
    return f"{reverse('threads')}?{urlencode({'resource': resource.key})}"
