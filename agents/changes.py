"""Keep who changed an agent, when, and what each field was before and after."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from memory.models.ids import new_id


class AgentChange(models.Model):
    """Record one change of an agent.

    ``fields`` holds each changed field's values before and after; of its memory options, those
    of each option, where one that was not set has none.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey(
        "agents.AgentProfile", on_delete=models.CASCADE, related_name="changes"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    fields = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["agent", "-created_at"], name="agent_changes")]

    def __str__(self) -> str:
        return ", ".join(self.fields)
