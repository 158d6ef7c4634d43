"""Let scripts in: personal tokens that stand for the person who made them.

A token is shown once; what is stored is its hash. It has the rights of its person, whatever they
are when it is used, and ends when it expires, is revoked, or its person may not sign in.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models.ids import new_id

if TYPE_CHECKING:
    from django.contrib.auth.models import User

OPENS_WITH = "om_"
SHOWN = 8
MOST = 50
LONGEST_NAME = 100
LONGEST_LIFE = timedelta(days=3650)
USE_COUNTS_EVERY = timedelta(minutes=1)


class BadToken(ValueError):
    """Say in one sentence why a token cannot be made."""


class TokenQuerySet(models.QuerySet["Token"]):
    """Select tokens."""

    def valid(self) -> Self:
        """Keep the tokens that let somebody in now."""
        unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, revoked_at__isnull=True, user__is_active=True)


class Token(models.Model):
    """Stand for a person in requests of scripts; ``opening`` is what its owner knows it by."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens"
    )
    name = models.CharField(max_length=LONGEST_NAME)
    opening = models.CharField(max_length=len(OPENS_WITH) + SHOWN)
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.opening}…)"

    @property
    def state(self) -> str:
        """Return in a word whether the token lets its person in: active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        gone = self.expires_at is not None and self.expires_at <= timezone.now()
        return "expired" if gone else "active"


def make(user: User, name: str, *, lasts: timedelta | None = None) -> tuple[Token, str]:
    """Return a new token of a person, and the secret that is shown once. Raises BadToken."""
    name = name.strip()
    if not name:
        raise BadToken("Give the token a name, so that you know later what it is for.")
    if len(name) > LONGEST_NAME:
        raise BadToken(f"The name has {len(name)} characters; at most {LONGEST_NAME} fit.")
    if lasts is not None and not timedelta() < lasts <= LONGEST_LIFE:
        raise BadToken(f"A token lasts from 1 to {LONGEST_LIFE.days} days, or for good.")
    if Token.objects.valid().filter(user=user).count() >= MOST:
        raise BadToken(f"You have {MOST} tokens already. Revoke one first.")
    secret = OPENS_WITH + token_urlsafe(32)
    token = Token.objects.create(
        user=user,
        name=name,
        opening=secret[: len(OPENS_WITH) + SHOWN],
        hash=hash_of(secret),
        expires_at=None if lasts is None else timezone.now() + lasts,
    )
    return token, secret


def hash_of(secret: str) -> str:
    """Return what is stored of a secret: 256 random bits need no slow hash."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def user_of(secret: str) -> User | None:
    """Return whom a secret stands for, noting its use; None when it lets nobody in."""
    if not secret.startswith(OPENS_WITH):
        return None
    found = Token.objects.valid().filter(hash=hash_of(secret)).select_related("user").first()
    if found is None:
        return None
    _note_use(found, timezone.now())
    return found.user


def _note_use(token: Token, now: datetime) -> None:
    # Once a minute is enough to know which tokens are in use, and spares a write a request.
    if token.last_used_at is None or now - token.last_used_at >= USE_COUNTS_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)


def revoke(user: User, token_id: UUID) -> bool:
    """End a token of a person for good; return False when there is none to end."""
    mine = Token.objects.filter(user=user, pk=token_id, revoked_at__isnull=True)
    return bool(mine.update(revoked_at=timezone.now()))
