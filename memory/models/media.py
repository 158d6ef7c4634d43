"""Know the pictures and files of messages; their bytes lie in the media storage."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils import timezone

from .ids import new_id


class MediaQuerySet(models.QuerySet["Media"]):
    """Select media."""

    def untouched_since(self, moment: object) -> Self:
        """Keep what nobody stored or sent from a moment on."""
        return self.filter(used_at__lt=moment)


class Media(models.Model):
    """Describe one picture or file, kept once under the SHA-256 of its bytes.

    ``media_type`` and ``name`` are those it was first stored with; ``used_at`` is the last time
    somebody stored it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hash = models.CharField(max_length=64, unique=True)
    media_type = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True)
    size = models.PositiveBigIntegerField()
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    pages = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now)

    objects = MediaQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "media"

    def __str__(self) -> str:
        return self.name or self.hash[:12]

    @property
    def path(self) -> str:
        """Return where the bytes lie in the storage."""
        return path_of(self.hash)


def path_of(digest: str) -> str:
    """Return where bytes with this SHA-256 lie in the storage."""
    return f"{digest[:2]}/{digest}"
