"""Store the runs of Observers and Reflectors; a running row is the lock."""

from __future__ import annotations

from datetime import timedelta
from typing import Self
from uuid import UUID, uuid4

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from .ids import new_id
from .record import MemoryRecord
from .swift import FromNow, swap
from .thread import Thread


class CycleLost(Exception):
    """Tell that a cycle no longer belongs to its caller; nothing was written."""


class CycleQuerySet(models.QuerySet["Cycle"]):
    """Select cycles."""

    def running(self) -> Self:
        """Keep the cycles that are under way, lapsed ones included."""
        return self.filter(status=Cycle.Status.RUNNING)

    def lapsed(self) -> Self:
        """Keep the running cycles whose owner stopped renewing the lease."""
        return self.running().filter(lease_expires_at__lt=Now())

    def tried_again(self) -> Self:
        """Keep what ended without a result and is tried again, now or after a rest."""
        return self.filter(next_attempt_at__isnull=False)

    def retire_lapsed(self, *, reason: str) -> int:
        """Fail lapsed cycles so that their lanes are free; return how many."""
        return self.lapsed().update(
            status=Cycle.Status.FAILED,
            error=reason,
            interrupted=True,
            finished_at=Now(),
            next_attempt_at=Now(),
        )


class Cycle(models.Model):
    """Record one run of an Observer or a Reflector, from claim to end.

    While it runs, its ``lane`` is the lock: buffering and observing a thread share
    ``observer:<thread>``, both kinds of reflection ``reflector``. ``owner`` names the claim,
    the lease ends a dead one. Times are the database's.
    """

    class Kind(models.TextChoices):
        BUFFER = "buffer"
        OBSERVE = "observe"
        BUFFER_REFLECTION = "buffer_reflection"
        REFLECT = "reflect"

    class Status(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        DISCARDED = "discarded"
        CANCELLED = "cancelled"

    #: How a cycle ends that brought nothing.
    FRUITLESS = (Status.FAILED, Status.DISCARDED, Status.CANCELLED)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    record = models.ForeignKey(MemoryRecord, on_delete=models.CASCADE, related_name="cycles")
    lane = models.CharField(max_length=64)
    kind = models.CharField(max_length=17, choices=Kind.choices)
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.PROTECT, related_name="cycles"
    )
    call = models.UUIDField(default=new_id)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.RUNNING)
    trigger = models.CharField(max_length=20, blank=True)
    first_position = models.BigIntegerField(null=True, blank=True)
    last_position = models.BigIntegerField(null=True, blank=True)
    message_tokens = models.PositiveIntegerField(default=0)
    observation_tokens = models.PositiveIntegerField(default=0)
    epoch = models.PositiveBigIntegerField()
    level = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=1)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    owner = models.UUIDField(default=uuid4)
    lease_expires_at = models.DateTimeField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    interrupted = models.BooleanField(default=False)
    model = models.CharField(max_length=200, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    request_hash = models.CharField(max_length=64, blank=True)
    reply_hash = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    note = models.TextField(
        blank=True, help_text="What else is worth knowing: a model that was passed over, say."
    )

    #: The request's text, in the process that claimed the cycle.
    request_text: str = ""

    objects = CycleQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["record", "lane", "-started_at"], name="cycle_lane_recent"),
            models.Index(fields=["thread", "-started_at"], name="cycle_thread_recent"),
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="cycle_resting",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["record", "lane"],
                condition=Q(status="running"),
                name="cycle_one_running_per_lane",
            ),
            models.CheckConstraint(
                condition=Q(status="running", finished_at__isnull=True)
                | (~Q(status="running") & Q(finished_at__isnull=False)),
                name="cycle_finished_when_not_running",
            ),
            models.CheckConstraint(
                condition=Q(interrupted=False) | Q(status="failed"),
                name="cycle_interrupted_is_failed",
            ),
            models.CheckConstraint(
                condition=Q(next_attempt_at__isnull=True) | Q(status__in=["failed", "cancelled"]),
                name="cycle_tried_again_without_result",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.status}"

    def renew(self, seconds: float) -> None:
        """Prolong the lease. Raises CycleLost when the cycle is no longer this owner's."""
        self._swap(lease_expires_at=FromNow(timedelta(seconds=seconds)))

    def finish(self, status: Cycle.Status, **changes: object) -> None:
        """End the cycle with what it cost and brought. Raises CycleLost."""
        self._swap(status=status, finished_at=FromNow(), **changes)
        self.status = status

    def _swap(self, **changes: object) -> None:
        mine = {"pk": self.pk, "owner": self.owner, "status": Cycle.Status.RUNNING}
        if swap(Cycle, mine, changes) is None:
            raise CycleLost("The lease of this cycle lapsed, or it was taken over.")


def observer_lane(thread_id: UUID) -> str:
    """Name the lock of a thread's Observer."""
    return f"observer:{thread_id}"


REFLECTOR_LANE = "reflector"
