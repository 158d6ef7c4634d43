"""Read the places whose options a person may see: the server, agents, and conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from agents.access import threads_for
from agents.models import AgentProfile
from memory.config import explain
from memory.models import MemoryRecord, Thread

from .fields import OF_AGENT

MOST = 30


@dataclass(frozen=True)
class OfServer:
    """Show one option that the server sets, or one of its models."""

    label: str
    value: str


def of_server() -> list[OfServer]:
    """Return what the server sets for all."""
    models = {
        "Answers with": settings.ACTOR_MODEL,
        "Observes with": settings.MEMORY_MODELS["observer"],
        "Condenses with": settings.MEMORY_MODELS["reflector"],
    }
    given = explain({}, {})
    options = {
        f"{group.name}: {each.label.lower()}": each.text.show(given[each.name].value)
        for group in OF_AGENT
        for each in group.fields
        if given[each.name].source == "server"
    }
    return [OfServer(label, value or "not set") for label, value in {**models, **options}.items()]


def agents() -> QuerySet[AgentProfile]:
    """Select the agents."""
    return AgentProfile.objects.order_by("name")


def threads(user: Any) -> list[Thread]:
    """Return a person's newest conversations; each tells whether it has options of its own."""
    own = MemoryRecord.objects.filter(thread=OuterRef("pk"), closed_at__isnull=True)
    found = threads_for(user).select_related("resource")
    return list(
        found.annotate(has_own=Exists(own.exclude(config={}))).order_by("-last_active_at")[:MOST]
    )
