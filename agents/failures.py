"""Store failures to sign in for as long as they count."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class SignInFailure(models.Model):
    """Record that signing in failed: neither for whom nor from where can be read off it."""

    account = models.CharField(max_length=64, help_text="Keyed hash of the name that was typed.")
    address = models.CharField(max_length=64, help_text="Keyed hash of where it came from.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["account", "-at"], name="failure_of_account"),
            models.Index(fields=["address", "-at"], name="failure_of_address"),
        ]

    def __str__(self) -> str:
        return f"failed at {self.at}"
