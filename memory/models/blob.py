"""Keep long texts once: prompts, replies and blocks of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from hashlib import sha256
from operator import or_
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

AT_ONCE = 100


class BlobQuerySet(models.QuerySet["Blob"]):
    """Select and keep texts."""

    def keep(self, texts: Iterable[str]) -> Self:
        """Store texts, in one statement; those that are stored already are held and marked as new.

        So whoever is about to let go of one sees that it is wanted again. In one order, since
        others do the same.
        """
        rows = {digest(text): text for text in texts}
        self.bulk_create(
            [Blob(hash=key, text=rows[key]) for key in sorted(rows)],
            update_conflicts=True,
            update_fields=["kept_at"],
            unique_fields=["hash"],
        )
        return self

    def let_go(self, hashes: Iterable[str], *, used: Callable[[set[str]], set[str]]) -> int:
        """Delete texts but those that ``used`` finds in use; return how many went.

        What somebody stores again meanwhile stays.
        """
        found = dict(self.filter(hash__in=set(hashes)).values_list("hash", "kept_at"))
        free = sorted(found.keys() - used(set(found)))
        gone = 0
        for start in range(0, len(free), AT_ONCE):
            asked = (Q(hash=key, kept_at=found[key]) for key in free[start : start + AT_ONCE])
            gone += self.filter(reduce(or_, asked)).delete()[0]
        return gone


# Memory blocks are asked for at every step; each holds its text here, up to a megabyte.
@lru_cache(maxsize=64)
def digest(text: str) -> str:
    """Return the key a text is kept under: SHA-256 in hexadecimal."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Blob(models.Model):
    """Hold one text under its hash."""

    hash = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    kept_at = models.DateTimeField(
        default=timezone.now, db_column="created_at", help_text="When it was last stored."
    )

    objects = BlobQuerySet.as_manager()

    def __str__(self) -> str:
        return self.hash[:12]
