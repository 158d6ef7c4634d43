"""Store observations, reflections and notes, and the lines they consist of."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from .ids import new_id
from .record import MemoryRecord
from .thread import Thread


class ObservationQuerySet(models.QuerySet["Observation"]):
    """Select observations, reflections and notes."""

    def buffered(self, record_id: object) -> Self:
        """Keep a record's observations that no revision shows yet, in order of coverage."""
        return self.filter(
            record_id=record_id, kind=Observation.Kind.OBSERVATION, since__isnull=True
        ).order_by("thread_id", "first_position")

    def covering(self, record_id: object, revision: int) -> Self:
        """Keep the observations whose messages are covered as of a revision."""
        return self.filter(
            record_id=record_id, kind=Observation.Kind.OBSERVATION, since__lte=revision
        )

    def waiting_reflections(self, record_id: object) -> Self:
        """Keep a record's reflections that wait for activation."""
        return self.filter(
            record_id=record_id,
            kind=Observation.Kind.REFLECTION,
            since__isnull=True,
            discarded_at__isnull=True,
        )


class Observation(models.Model):
    """Hold what one cycle wrote: the unit of coverage.

    An observation covers messages ``first_position..last_position`` of one thread; it is
    buffered until a revision (``since``) activates it and covers them for good from then on.
    A reflection covers nothing: its lines take the place of those of its sources. A note is
    written by a person. A discarded row was buffered once, and given up before it was shown;
    it covers nothing any more. ``place`` is the revision that orders the row among others.
    """

    class Kind(models.TextChoices):
        OBSERVATION = "observation"
        REFLECTION = "reflection"
        NOTE = "note"
        DISCARDED = "discarded"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    record = models.ForeignKey(MemoryRecord, on_delete=models.CASCADE, related_name="observations")
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.PROTECT, related_name="observations"
    )
    kind = models.CharField(max_length=11, choices=Kind.choices)
    first_position = models.BigIntegerField(null=True, blank=True)
    last_position = models.BigIntegerField(null=True, blank=True)
    message_tokens = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    current_task = models.TextField(blank=True)
    suggested_response = models.TextField(blank=True)
    thread_title = models.CharField(max_length=200, blank=True)
    extracted = models.JSONField(
        default=dict, blank=True, help_text="All values extracted so far, by name."
    )
    place = models.PositiveBigIntegerField(null=True, blank=True)
    generation = models.PositiveIntegerField(default=0)
    since = models.PositiveBigIntegerField(null=True, blank=True)
    discarded_at = models.DateTimeField(null=True, blank=True)
    cycle = models.ForeignKey(
        "memory.Cycle", null=True, blank=True, on_delete=models.PROTECT, related_name="observations"
    )
    sources = models.ManyToManyField(
        "self", through="ReflectionSource", symmetrical=False, related_name="reflections"
    )

    objects = ObservationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["record", "thread", "last_position"], name="obs_covered"),
            # Asked for at every step; of all the rows a long life leaves, one waits at most.
            models.Index(
                fields=["record"],
                condition=Q(kind="reflection", since__isnull=True, discarded_at__isnull=True),
                name="reflection_waits",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["record", "thread", "first_position"],
                condition=Q(kind="observation"),
                name="observation_first_position",
            ),
            models.CheckConstraint(
                condition=~Q(kind="observation")
                | Q(
                    thread__isnull=False,
                    first_position__isnull=False,
                    last_position__isnull=False,
                    last_position__gte=F("first_position"),
                    discarded_at__isnull=True,
                ),
                name="observation_covers_a_range",
            ),
            models.CheckConstraint(
                condition=Q(since__isnull=True) | Q(place__isnull=False, discarded_at__isnull=True),
                name="observation_shown_has_place",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.first_position}–{self.last_position}"


class ReflectionSource(models.Model):
    """Name one row whose lines a reflection takes the place of."""

    reflection = models.ForeignKey(
        Observation, on_delete=models.CASCADE, related_name="source_links"
    )
    observation = models.ForeignKey(
        Observation, on_delete=models.CASCADE, related_name="reflection_links"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reflection", "observation"], name="source_once"),
        ]

    def __str__(self) -> str:
        return f"{self.reflection_id} from {self.observation_id}"


class LineQuerySet(models.QuerySet["Line"]):
    """Select lines."""

    def as_of(self, record_id: object, revision: int) -> Self:
        """Keep the lines visible at a revision, unordered."""
        return self.filter(
            Q(until__isnull=True) | Q(until__gt=revision),
            observation__record_id=record_id,
            since__lte=revision,
        )

    def in_order(self) -> Self:
        """Sort as the Actor and the pages show them."""
        return self.order_by(
            "observation__place",
            F("observation__thread_id").asc(nulls_first=True),
            F("observation__first_position").asc(nulls_first=True),
            "observation_id",
            "ordinal",
        )


class Line(models.Model):
    """Hold one statement, immutable: the unit of content.

    Visible from revision ``since`` up to, not including, ``until``. A changed line is a new
    row that ``replaces`` the old one.
    """

    class Kind(models.TextChoices):
        HIGH = "high"
        MEDIUM = "medium"
        LOW = "low"
        DONE = "done"
        PLAIN = "plain"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    observation = models.ForeignKey(Observation, on_delete=models.CASCADE, related_name="lines")
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=6, choices=Kind.choices)
    said_at = models.DateTimeField(null=True, blank=True)
    text = models.TextField()
    tokens = models.PositiveIntegerField()
    first_position = models.BigIntegerField(null=True, blank=True)
    last_position = models.BigIntegerField(null=True, blank=True)
    pinned = models.BooleanField(default=False)
    since = models.PositiveBigIntegerField(null=True, blank=True)
    until = models.PositiveBigIntegerField(null=True, blank=True)
    replaces = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="successors"
    )
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = LineQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["observation", "since", "until"], name="line_visible")]
        constraints = [
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(since__isnull=False, since__lt=F("until")),
                name="line_since_before_until",
            ),
            models.CheckConstraint(
                condition=Q(first_position__isnull=True, last_position__isnull=True)
                | Q(
                    first_position__isnull=False,
                    last_position__isnull=False,
                    last_position__gte=F("first_position"),
                ),
                name="line_sources_in_order",
            ),
        ]

    def __str__(self) -> str:
        return self.text
