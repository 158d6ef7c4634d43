"""Store labs: their panes, and what was done in each, step by step."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models import Resource, Thread
from memory.models.ids import new_id

LETTERS = "ABCD"


class Lab(models.Model):
    """Hold one lab: people, resources and threads made for it, and wiped with it.

    ``source`` is the scenario it was opened with; ``facts`` are texts to look for, each with
    the pane it was said in where that cannot be told from the prompts.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200)
    about = models.TextField(blank=True)
    source = models.TextField(blank=True)
    facts = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name

    @property
    def mark(self) -> str:
        """Return what the names and keys of all that was made for it hold."""
        return f"lab-{self.pk.hex[-8:]}"


class Pane(models.Model):
    """Hold one pane of a lab: who talks in which thread of which resource."""

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="panes")
    ordinal = models.PositiveSmallIntegerField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="lab_panes"
    )
    resource = models.ForeignKey(Resource, on_delete=models.CASCADE, related_name="lab_panes")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="lab_panes")

    class Meta:
        ordering = ["ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["lab", "ordinal"], name="pane_ordinal"),
            models.CheckConstraint(condition=Q(ordinal__lt=len(LETTERS)), name="pane_few"),
        ]

    def __str__(self) -> str:
        return f"{self.letter} · {self.person.first_name} · {self.resource.name} / {self.thread}"

    @property
    def letter(self) -> str:
        """Return the pane's letter."""
        return LETTERS[self.ordinal]


class EntryQuerySet(models.QuerySet["Entry"]):
    """Select entries of run logs."""

    def waiting(self) -> Self:
        """Keep the steps that nobody has begun, in order."""
        return self.filter(state=Entry.State.WAITING).order_by("pk")

    def running(self) -> Self:
        """Keep the steps under way."""
        return self.filter(state=Entry.State.RUNNING)

    def recorded(self) -> Self:
        """Keep the steps that were carried out, in order."""
        did = (Entry.State.DONE, Entry.State.PASSED, Entry.State.FAILED)
        return self.filter(state__in=did, step__isnull=False).order_by("pk")


class Entry(models.Model):
    """Hold one step of a lab, from asked for to done; together they are its run log.

    ``step`` is as a scenario writes it; ``text`` says what came of it.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        PASSED = "passed"
        FAILED = "failed"
        SKIPPED = "skipped"

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="entries")
    step = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = EntryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["lab"], condition=Q(state="running"), name="entry_one_running_per_lab"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.step}"
