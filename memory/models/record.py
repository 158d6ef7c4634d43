"""Store records, the revisions that change them and the cursors of their threads."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from .ids import new_id
from .swift import Plus, insert, swap
from .thread import Resource, Thread


class RecordMoved(Exception):
    """Tell that the record was edited or closed since it was read; nothing was written."""


class MemoryRecord(models.Model):
    """Hold the memory of one scope: a thread, or a whole resource.

    ``revision`` numbers what the Actor sees, ``epoch`` rises with every human change, so
    that work begun before it can be given up, ``generation`` counts the reflections.
    """

    class Scope(models.TextChoices):
        THREAD = "thread"
        RESOURCE = "resource"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    scope = models.CharField(max_length=8, choices=Scope.choices, default=Scope.THREAD)
    resource = models.ForeignKey(Resource, on_delete=models.PROTECT, related_name="records")
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.PROTECT, related_name="records"
    )
    config = models.JSONField(default=dict, blank=True)
    revision = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    generation = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(scope="thread", closed_at__isnull=True),
                name="record_one_open_per_thread",
            ),
            models.UniqueConstraint(
                fields=["resource"],
                condition=Q(scope="resource", closed_at__isnull=True),
                name="record_one_open_per_resource",
            ),
            models.CheckConstraint(
                condition=Q(scope="thread", thread__isnull=False)
                | Q(scope="resource", thread__isnull=True),
                name="record_thread_fits_scope",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} memory at revision {self.revision}"

    def remembering(self) -> models.QuerySet[Thread]:
        """Select the conversations whose memory this is, the one that was active last first."""
        if self.thread_id is not None:
            return Thread.objects.filter(pk=self.thread_id)
        own = MemoryRecord.objects.filter(thread__isnull=False, closed_at=None).values("thread")
        threads = Thread.objects.filter(resource=self.resource_id, remembers=True)
        return threads.exclude(pk__in=own).order_by("-last_active_at")

    def advance(self, *, generations: int = 0, epochs: int = 0) -> int:
        """Take the next revision number, first of all writes of a change; return it.

        ``epochs`` is 1 for what people change and for clear, erase and scope: work begun
        before it is given up. Must run inside the transaction of that change: its row lock
        lets one writer at a time through. Raises RecordMoved when the epoch this instance
        was read at is past or the record is closed.
        """
        taken = swap(
            MemoryRecord,
            self._mine(),
            {"revision": Plus(1), "generation": Plus(generations), "epoch": Plus(epochs)},
            returning=("revision", "generation", "epoch"),
        )
        if taken is None:
            raise RecordMoved("The memory was edited or closed meanwhile.")
        self.revision, self.generation, self.epoch = taken
        return self.revision

    def hold(self) -> None:
        """Take the row's lock for a change nobody sees yet. Raises RecordMoved as advance does."""
        if swap(MemoryRecord, self._mine(), {"epoch": Plus(0)}) is None:
            raise RecordMoved("The memory was edited or closed meanwhile.")

    def insert_beside(self, row: models.Model) -> None:
        """Insert a row that tells what memory says, while it still does.

        Nobody changes or erases any of it until the transaction ends; others may insert
        beside it too. Threads are to be locked before. Raises RecordMoved as advance does.
        """
        if not insert(row, beside=MemoryRecord, where=self._mine()):
            raise RecordMoved("The memory was edited or closed meanwhile.")

    def _mine(self) -> dict[str, Any]:
        return {"pk": self.pk, "epoch": self.epoch, "closed_at": None}


class Revision(models.Model):
    """Record one numbered change of the visible memory; tokens are those of all visible lines.

    They are as sent: with bullets, marks, times, and the headers of days.
    """

    class Cause(models.TextChoices):
        ACTIVATE = "activate"
        OBSERVE = "observe"
        REFLECT = "reflect"
        EDIT = "edit"
        NOTE = "note"
        PIN = "pin"
        FORGET = "forget"
        RESTORE = "restore"
        CLEAR = "clear"
        ERASE = "erase"
        CONFIG = "config"
        SCOPE = "scope"
        IMPORT = "import"
        FORK = "fork"

    record = models.ForeignKey(MemoryRecord, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveBigIntegerField()
    cause = models.CharField(max_length=8, choices=Cause.choices)
    cycle = models.ForeignKey(
        "memory.Cycle", null=True, blank=True, on_delete=models.PROTECT, related_name="revisions"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    trigger = models.CharField(max_length=20, blank=True)
    reason = models.TextField(blank=True)
    options = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of config: each option changed, with what it was before and after, if set.",
    )
    message_tokens_before = models.PositiveIntegerField(default=0)
    message_tokens_after = models.PositiveIntegerField(default=0)
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["record", "number"], name="revision_number"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.cause}"


class CursorMoved(Exception):
    """Tell that another writer moved the cursor first; nothing was written."""


class Cursor(models.Model):
    """Hold how far a thread's messages are buffered and observed. It serves writing only."""

    record = models.ForeignKey(MemoryRecord, on_delete=models.CASCADE, related_name="cursors")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="cursors")
    buffered_through = models.BigIntegerField(default=0)
    observed_through = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["record", "thread"], name="cursor_thread"),
            models.CheckConstraint(
                condition=Q(observed_through__lte=F("buffered_through")),
                name="cursor_observed_within_buffered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.observed_through} of {self.buffered_through}"
