"""Begin conversations."""

from __future__ import annotations

from memory.models import Resource, Thread

from ..models import AgentProfile


def start(resource: Resource, profile: AgentProfile, *, title: str = "") -> Thread:
    """Return a new, empty thread of a resource with an agent."""
    return Thread.objects.create(
        resource=resource, agent=profile.slug, title=title, remembers=profile.remembers
    )
