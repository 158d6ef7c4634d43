"""Keep who of the staff read another's memory, and who did what cannot be taken back.

An entry names people and resources by word as well, so that it still says who and whose once
they are gone. It holds no text of any conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from memory.models import Resource

READ = "read"
LONGEST_PLACE = 300
LONGEST_REASON = 1_000


class AuditEntry(models.Model):
    """Record one thing somebody did: who, what, whose, when and where.

    Of reading, one entry is kept an hour: ``hour`` is when it began.
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=40, db_index=True)
    resource_key = models.CharField("resource", max_length=100, blank=True, db_index=True)
    thread = models.UUIDField(null=True, blank=True)
    place = models.CharField("where", max_length=LONGEST_PLACE, blank=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    numbers = models.JSONField(default=dict, blank=True, help_text="What it did, counted.")
    hour = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name_plural = "audit entries"
        constraints = [
            models.UniqueConstraint(
                fields=["actor", "resource_key", "hour"],
                condition=Q(hour__isnull=False),
                name="audit_one_reading_an_hour",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.resource_key}".rstrip()


def note_reading(request: HttpRequest, resource: Resource) -> None:
    """Record that somebody opened another's memory, once an hour for each of them."""
    user: Any = request.user
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    seen = AuditEntry.objects.filter(actor=user, resource_key=resource.key, hour=hour)
    if not seen.exists():
        # Two requests at once may both find none; the constraint lets one entry stand.
        AuditEntry.objects.bulk_create(
            [_entry(request, READ, resource.key, hour=hour)], ignore_conflicts=True
        )


def note_act(
    request: HttpRequest,
    action: str,
    *,
    resource: Resource | str = "",
    thread: UUID | None = None,
    reason: str = "",
    numbers: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Record that somebody did something that touches others' data; return the entry."""
    key = resource if isinstance(resource, str) else resource.key
    entry = _entry(request, action, key, thread=thread, numbers=dict(numbers or {}))
    entry.reason = reason.strip()[:LONGEST_REASON]
    entry.save(force_insert=True)
    return entry


def _entry(request: HttpRequest, action: str, key: str, **fields: Any) -> AuditEntry:
    user: Any = request.user
    return AuditEntry(
        actor=user,
        actor_name=user.get_username(),
        action=action,
        resource_key=key,
        place=request.path[:LONGEST_PLACE],
        **fields,
    )
