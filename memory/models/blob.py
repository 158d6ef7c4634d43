"""Keep long texts once: prompts, replies and blocks of requests."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Self

from django.db import models
from django.utils import timezone


class BlobQuerySet(models.QuerySet["Blob"]):
    """Select and keep texts."""

    def keep(self, texts: Iterable[str]) -> Self:
        """Store the texts that are not stored yet, in one statement."""
        self.bulk_create(
            [Blob(hash=digest(text), text=text) for text in dict.fromkeys(texts)],
            ignore_conflicts=True,
        )
        return self


# Memory blocks are asked for at every step; each holds its text here, up to a megabyte.
@lru_cache(maxsize=64)
def digest(text: str) -> str:
    """Return the key a text is kept under: SHA-256 in hexadecimal."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Blob(models.Model):
    """Hold one text under its hash."""

    hash = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    objects = BlobQuerySet.as_manager()

    def __str__(self) -> str:
        return self.hash[:12]
