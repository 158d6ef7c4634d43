"""Begin conversations."""

from __future__ import annotations

from memory.models import Resource, Thread

from ..models import AgentProfile


def start(
    resource: Resource, profile: AgentProfile, *, title: str = "", temporary: bool = False
) -> Thread:
    """Return a new, empty thread; a temporary one is never remembered."""
    return Thread.objects.create(
        resource=resource,
        agent=profile.slug,
        title=title,
        remembers=profile.remembers and not temporary,
    )
