"""Store resources, their threads and the messages of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from .fields import ExactJSONField
from .ids import new_id
from .swift import Plus, swap

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


UNTITLED = "New conversation"


class Resource(models.Model):
    """Own memory: usually one user, or a team. Its members see all of its threads."""

    key = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=64, default="UTC")
    scope = models.CharField(
        max_length=8,
        choices=[("thread", "Each conversation its own"), ("resource", "One for all")],
        blank=True,
        help_text="Whose memory its conversations have. Empty: as their agents say.",
    )
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="resources", blank=True)

    def __str__(self) -> str:
        return self.key


class ThreadQuerySet(models.QuerySet["Thread"]):
    """Select threads."""

    def of(self, user: AbstractUser) -> Self:
        """Keep the threads of resources the user is a member of, deleted ones left out."""
        return self.there().filter(resource__members=user)

    def there(self) -> Self:
        """Keep the threads that nobody has deleted."""
        return self.filter(deleted_at__isnull=True)

    def temporary(self) -> Self:
        """Keep the threads that do not remember and of which no memory ever holds anything."""
        found = self.filter(remembers=False).exclude(observations__isnull=False)
        return found.exclude(records__observations__isnull=False)

    def take_positions(self, thread_id: UUID, count: int) -> int:
        """Reserve ``count`` positions of a thread and return the first.

        Must run inside the transaction that inserts the messages: the row lock it takes
        makes commit order position order. Raises Thread.DoesNotExist.
        """
        taken = swap(
            Thread,
            {"pk": thread_id},
            {"last_position": Plus(count), "last_active_at": timezone.now()},
            returning=("last_position",),
        )
        if taken is None:
            raise Thread.DoesNotExist(f"There is no thread {thread_id}.")
        return int(taken[0]) - count + 1


class Thread(models.Model):
    """Hold one conversation of a resource."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    resource = models.ForeignKey(Resource, on_delete=models.PROTECT, related_name="threads")
    title = models.CharField(max_length=200, blank=True)
    title_pinned = models.BooleanField(default=False)
    agent = models.SlugField(max_length=100)
    remembers = models.BooleanField(
        default=True, help_text="Off: no memory row is ever written for this thread."
    )
    metadata = models.JSONField(default=dict, blank=True)
    last_position = models.BigIntegerField(default=0)
    last_active_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks"
    )
    fork_position = models.BigIntegerField(null=True, blank=True)
    is_lab = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="Hidden since; the sweep erases it a moment later."
    )

    objects = ThreadQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["resource", "-last_active_at"], name="thread_recent"),
            models.Index(fields=["-last_active_at"], name="thread_active"),
        ]

    def __str__(self) -> str:
        return self.title or UNTITLED

    @property
    def is_temporary(self) -> bool:
        """Tell whether nothing was ever remembered of it; memory switched off is not enough."""
        return not self.remembers and Thread.objects.temporary().filter(pk=self.pk).exists()


class MessageQuerySet(models.QuerySet["Message"]):
    """Select messages."""

    def above(self, thread_id: object, position: int) -> Self:
        """Keep the thread's messages after a position, in order."""
        return self.filter(thread_id=thread_id, position__gt=position).order_by("position")

    def within(self, thread_id: object, first: int, last: int) -> Self:
        """Keep the thread's messages of a closed range, in order."""
        return self.filter(thread_id=thread_id, position__range=(first, last)).order_by("position")


class Message(models.Model):
    """Hold one model message, immutable, with the tokens it costs to send.

    ``payload`` is the message as JSON; ``text`` its searchable projection. ``model`` wrote it;
    of a request with pictures or files, it is the one by whose rules they were counted.
    """

    class Kind(models.TextChoices):
        REQUEST = "request"
        RESPONSE = "response"

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages")
    position = models.BigIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    payload = ExactJSONField()
    text = models.TextField(blank=True)
    tokens = models.PositiveIntegerField()
    model = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["thread", "position"], name="message_position"),
            models.CheckConstraint(condition=Q(position__gte=1), name="message_position_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.position}"
