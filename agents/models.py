"""Store agents, the turns of their conversations and what each request contained."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Self
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from memory.models import Thread
from memory.models.ids import new_id
from memory.models.swift import FromNow, swap

from .audit import AuditEntry as AuditEntry
from .changes import AgentChange as AgentChange
from .failures import SignInFailure as SignInFailure
from .looks import BellLook as BellLook
from .looks import MemoryLook as MemoryLook
from .looks import ThreadLook as ThreadLook
from .tokens import Token as Token

#: The agent of labs, and those that labs make of it for trials.
OF_LAB = re.compile(r"lab(-[0-9a-f]{8}-[a-d])?")


class AgentProfile(models.Model):
    """Describe an Actor: what it is told, which model and tools it has, how it remembers."""

    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    about = models.TextField(blank=True, help_text="Shown to people choosing an agent.")
    instructions = models.TextField()
    model = models.CharField(
        max_length=200, blank=True, help_text="Empty: the model the server was started with."
    )
    remembers = models.BooleanField(default=True)
    memory_options = models.JSONField(default=dict, blank=True)
    tools = models.JSONField(default=list, blank=True)

    def __str__(self) -> str:
        return self.name

    @property
    def is_of_lab(self) -> bool:
        """Tell whether it was made for labs, so that nobody is to choose it elsewhere."""
        return bool(OF_LAB.fullmatch(self.slug))

    @property
    def model_name(self) -> str:
        """Return the name of the model in use."""
        return self.model or settings.ACTOR_MODEL


def memory_options(slug: str) -> dict[str, Any]:
    """Return the memory options of an agent; none for an agent nobody described."""
    found = AgentProfile.objects.filter(slug=slug).values_list("memory_options", flat=True).first()
    return found or {}


class TurnLost(Exception):
    """Tell that a turn no longer belongs to its runner; nothing was written."""


class TurnQuerySet(models.QuerySet["Turn"]):
    """Select turns."""

    def waiting(self) -> Self:
        """Keep the prompts whose turn has not come, in order."""
        return self.filter(status=Turn.Status.WAITING).order_by("number")

    def running(self) -> Self:
        """Keep the turns under way, lapsed ones included."""
        return self.filter(status=Turn.Status.RUNNING)

    def lapsed(self) -> Self:
        """Keep the running turns whose owner stopped renewing the lease."""
        return self.running().filter(lease_expires_at__lt=Now())


class Turn(models.Model):
    """Hold one user prompt and the Actor's answer to it; one runs per thread at a time."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"
        WITHDRAWN = "withdrawn"

    UNANSWERED = (Status.FAILED, Status.STOPPED, Status.INTERRUPTED)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    key = models.UUIDField(
        default=uuid4, unique=True, help_text="Given by the sender: sending twice makes one turn."
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    status = models.CharField(max_length=11, choices=Status.choices, default=Status.WAITING)
    prompt = models.TextField()
    attachments = models.JSONField(
        default=list, blank=True, help_text="Files sent with the prompt, in order."
    )
    draft_text = models.TextField(blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    stop_requested = models.BooleanField(default=False)
    usage = models.JSONField(default=dict, blank=True)
    model = models.CharField(
        max_length=200, blank=True, help_text="What answered; empty where no model was asked."
    )
    cost = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="In US dollars, at the prices when it was answered; empty where not known.",
    )
    error = models.TextField(blank=True)
    first_position = models.BigIntegerField(null=True, blank=True)
    last_position = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="waiting"), name="turn_waiting"),
            models.Index(fields=["author", "-created_at"], name="turn_sent_by"),
            models.Index(
                fields=["author"],
                condition=Q(status__in=["waiting", "running"]),
                name="turn_open_of_author",
            ),
            # A conversation of thousands of turns has few that run or wait.
            models.Index(
                fields=["thread", "status", "number"],
                condition=Q(status__in=["running", "waiting"]),
                name="turn_open",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="turn_number"),
            models.UniqueConstraint(
                fields=["thread"], condition=Q(status="running"), name="turn_one_running_per_thread"
            ),
            models.CheckConstraint(
                condition=~Q(status="running")
                | Q(lease_token__isnull=False, lease_expires_at__isnull=False),
                name="turn_running_has_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.status}"

    def renew(self, **changes: object) -> None:
        """Prolong the lease, with other changes in the same statement. Raises TurnLost."""
        self._swap(lease_expires_at=FromNow(lease()), **changes)

    def close(self, status: Turn.Status, **changes: object) -> None:
        """End the turn. Raises TurnLost when it is no longer this runner's."""
        self._swap(status=status, finished_at=FromNow(), draft_text="", **changes)
        self.status = status

    def _swap(self, **changes: object) -> None:
        mine = {
            "pk": self.pk,
            "lease_token": self.lease_token,
            "status": Turn.Status.RUNNING,
        }
        if swap(Turn, mine, changes) is None:
            raise TurnLost("The lease of this turn lapsed, or it was taken over.")


def lease() -> timedelta:
    """Return how long a turn stays its runner's without being renewed."""
    return settings.LEASE


class RequestSnapshot(models.Model):
    """Record what one model request contained, block by block.

    ``blocks`` is a list of ``{kind, source, tokens, hash}`` in the order sent.
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="requests")
    step = models.PositiveIntegerField()
    revision = models.PositiveBigIntegerField()
    blocks = models.JSONField()
    total = models.PositiveIntegerField()
    cacheable = models.PositiveIntegerField(default=0)
    hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["turn", "step"], name="snapshot_step"),
        ]

    def __str__(self) -> str:
        return f"{self.turn_id} step {self.step}"
