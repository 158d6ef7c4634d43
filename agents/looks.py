"""Keep how far each person has looked, so that pages can say what is new to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Count, Q
from django.utils import timezone

from memory.models import Line, MemoryRecord, Message, Thread

#: Looks that follow each other sooner are one visit: what was new at its begin stays marked.
VISIT = timedelta(minutes=15)


class ThreadLook(models.Model):
    """Hold up to which message of a thread somebody has looked."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="thread_looks"
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    through = models.PositiveBigIntegerField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "thread"], name="look_at_thread")]

    def __str__(self) -> str:
        return f"through message {self.through}"


class MemoryLook(models.Model):
    """Hold up to which revision of a memory somebody has looked; ``since`` is where a visit began.

    The page of a memory is rendered anew while it is looked at, and what was new must stay
    marked then.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory_looks"
    )
    record = models.ForeignKey(MemoryRecord, on_delete=models.CASCADE, related_name="+")
    through = models.PositiveBigIntegerField()
    since = models.PositiveBigIntegerField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "record"], name="look_at_memory")]

    def __str__(self) -> str:
        return f"through revision {self.through}"

    def began(self, at: datetime) -> int:
        """Return the revision up to which nothing is new to somebody who looks now."""
        return self.through if at - self.at > VISIT else self.since


class BellLook(models.Model):
    """Hold when somebody looked at the bell last."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="bell_look"
    )
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"looked at {self.at:%d %b %H:%M}"


def news_of_threads(user: Any, threads: Iterable[UUID]) -> dict[UUID, int | None]:
    """Return how many messages of threads are new to a person; None where they never looked."""
    found: dict[UUID, int | None] = dict.fromkeys(threads)
    looks = ThreadLook.objects.filter(user=user, thread__in=found)
    newer = Q(pk__in=[])
    for thread, through in looks.values_list("thread", "through"):
        found[thread] = 0
        newer |= Q(thread=thread, position__gt=through)
    counted = Message.objects.filter(newer).order_by().values_list("thread")
    return found | dict(counted.annotate(count=Count("pk")))


def first_news(user: Any, thread: UUID) -> tuple[int, int]:
    """Return the first position of a thread that is new to a person, and how many are.

    Both are 0 when nothing is, or when they look for the first time.
    """
    look = ThreadLook.objects.filter(user=user, thread=thread).first()
    if look is None:
        return 0, 0
    newer = Message.objects.filter(thread=thread, position__gt=look.through)
    found = newer.aggregate(first=models.Min("position"), count=Count("pk"))
    return found["first"] or 0, found["count"]


def news_of_memories(user: Any, records: Iterable[UUID]) -> dict[UUID, int | None]:
    """Return how many visible lines of memories are new to a person; None as with threads."""
    found: dict[UUID, int | None] = dict.fromkeys(records)
    looks = MemoryLook.objects.filter(user=user, record__in=found)
    newer = Q(pk__in=[])
    for record, through in looks.values_list("record", "through"):
        found[record] = 0
        newer |= Q(observation__record=record, since__gt=through)
    visible = Line.objects.filter(newer, until__isnull=True).order_by()
    counted = visible.values_list("observation__record")
    return found | dict(counted.annotate(count=Count("pk")))


def last_look(user: Any, record: UUID, at: datetime) -> int | None:
    """Return the revision up to which nothing of a memory is new; None at the first look."""
    look = MemoryLook.objects.filter(user=user, record=record).first()
    return None if look is None else look.began(at)
