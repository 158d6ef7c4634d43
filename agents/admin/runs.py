"""Show turns, requests, cycles and the texts they were made of."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from unfold.decorators import action, display

from agents.models import RequestSnapshot, Turn
from memory.models import Blob, Cycle, Resource

from . import acts
from .asking import ask
from .base import Rows, as_json, badge, link, register, short, viewer
from .labs import made_for_labs


@register(Cycle)
class CycleAdmin(Rows):
    """Show runs of Observers and Reflectors; let failed ones be tried again, dead ones go."""

    lab_rows = made_for_labs("record__resource")
    list_display = (
        "kind",
        "state",
        "thread",
        "model",
        "attempt",
        "input_tokens",
        "output_tokens",
        "cost",
        "took",
        "started_at",
    )
    list_filter = ("status", "kind", "interrupted", "model", "started_at")
    list_select_related = ("thread",)
    search_fields = ("=id", "=record__id", "=thread__id", "error", "model")
    ordering = ("-pk",)
    readonly_fields = ("asked", "replied")
    actions_detail = ("try_again", "cancel", "release")

    def resource_of(self, obj: Any) -> Resource:
        """Return whose memory was worked on."""
        found: Resource = obj.record.resource
        return found

    @display(description="Status", ordering="status")
    def state(self, obj: Any) -> Any:
        """Return how it ended, or that it runs."""
        return badge("interrupted") if obj.interrupted else badge(obj.status)

    @display(description="Took")
    def took(self, obj: Any) -> str:
        """Return how long it took."""
        if obj.finished_at is None:
            return "–"
        return f"{(obj.finished_at - obj.started_at).total_seconds():.1f} s"

    @display(description="Request")
    def asked(self, obj: Any) -> Any:
        """Return what the model was asked."""
        return _text(obj.request_hash)

    @display(description="Reply")
    def replied(self, obj: Any) -> Any:
        """Return what it replied."""
        return _text(obj.reply_hash)

    def _cycle(self, object_id: str) -> Cycle:
        return get_object_or_404(Cycle.objects.select_related("record__resource"), pk=object_id)

    @action(description="Try again…", url_path="again")
    def try_again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Let it be tried again now."""
        return ask(request, self.admin_site, acts.trying_again(self._cycle(object_id)))

    @action(description="Cancel…", url_path="cancel")
    def cancel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End it because nobody wants it now."""
        act = acts.cancelling_cycle(self._cycle(object_id), request.user)
        return ask(request, self.admin_site, act)

    @action(description="Release lease…", url_path="release")
    def release(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take it from its owner."""
        return ask(request, self.admin_site, acts.releasing_cycle(self._cycle(object_id)))


def _text(digest: str) -> Any:
    found = Blob.objects.filter(hash=digest).first() if digest else None
    return viewer(found.text) if found else "It is not kept any more."


@register(Turn)
class TurnAdmin(Rows):
    """Show prompts and how they were answered."""

    lab_rows = made_for_labs("thread__resource")
    list_display = ("number", "state", "asked", "thread", "author", "created_at")
    list_display_links = ("number", "asked")
    list_filter = ("status", "created_at")
    list_select_related = ("thread", "author")
    search_fields = ("prompt", "=id", "=thread__id", "author__username")
    ordering = ("-pk",)
    actions_detail = ("release",)

    def resource_of(self, obj: Any) -> Resource:
        """Return whose conversation it is of."""
        found: Resource = obj.thread.resource
        return found

    @display(description="Status", ordering="status")
    def state(self, obj: Any) -> Any:
        """Return how it ended, or that it runs or waits."""
        return badge(obj.status)

    @display(description="Prompt")
    def asked(self, obj: Any) -> str:
        """Return how the prompt begins."""
        return short(obj.prompt) or "(files)"

    @action(description="Release lease…", url_path="release")
    def release(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take it from its runner."""
        rows = Turn.objects.select_related("thread__resource")
        turn = get_object_or_404(rows, pk=object_id)
        return ask(request, self.admin_site, acts.releasing_turn(turn))


@register(RequestSnapshot)
class RequestAdmin(Rows):
    """Show what each model request held."""

    lab_rows = made_for_labs("turn__thread__resource")
    list_display = ("turn", "step", "revision", "total", "cacheable", "conversation", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("turn__thread",)
    search_fields = ("=turn__id", "=turn__thread__id", "=hash")
    ordering = ("-pk",)
    fields = ("turn", "step", "revision", "total", "cacheable", "hash", "created_at", "parts")
    readonly_fields = ("parts",)

    def resource_of(self, obj: Any) -> Resource:
        """Return whose conversation it is of."""
        found: Resource = obj.turn.thread.resource
        return found

    @display(description="Conversation")
    def conversation(self, obj: Any) -> Any:
        """Return the conversation."""
        return link("memory_thread_change", obj.turn.thread, obj.turn.thread_id)

    @display(description="Blocks")
    def parts(self, obj: Any) -> Any:
        """Return its blocks."""
        return as_json(obj.blocks)


@register(Blob)
class BlobAdmin(Rows):
    """Show the texts of requests and replies, each kept once; who opens one is noted."""

    list_display = ("__str__", "begins", "kept_at")
    list_filter = ("kept_at",)
    search_fields = ("=hash",)
    ordering = ("-kept_at",)
    fields = ("hash", "kept_at", "whole")
    readonly_fields = ("whole",)

    def resource_of(self, obj: Any) -> Resource | None:
        """Return whose memory the text was written for, if a cycle still says so."""
        used = Cycle.objects.filter(request_hash=obj.hash) | Cycle.objects.filter(
            reply_hash=obj.hash
        )
        cycle = used.select_related("record__resource").first()
        return cycle.record.resource if cycle else None

    @display(description="Text")
    def begins(self, obj: Any) -> str:
        """Return how it begins."""
        return short(obj.text[:400])

    @display(description="Text")
    def whole(self, obj: Any) -> Any:
        """Return all of it."""
        return viewer(obj.text)
