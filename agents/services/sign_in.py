"""Slow down whoever guesses passwords: by account and by address.

Failures are rows, not counters in a cache: all processes see them in the embedded mode and on a
team's server alike, and they count while Redis is away or after a restart. Checking a password
takes so much longer than writing a row that nobody notices the one more.
"""

from __future__ import annotations

import logging
import unicodedata
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone
from django.utils.crypto import salted_hmac

from ..limits import in_words
from ..models import SignInFailure

logger = logging.getLogger(__name__)


class Throttled(Exception):
    """Say in a sentence how long to wait before signing in is tried again."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(
            "Signing in failed too often. Nothing was checked this time: "
            f"try again in {in_words(wait)}."
        )
        self.retry_after = max(1, round(wait.total_seconds() + 0.5))


def begin(name: str, address: str, *, now: datetime | None = None) -> SignInFailure:
    """Count an attempt as failed before its password is looked at, and return it.

    Written first and counted then, so that attempts side by side see each other. Raises
    Throttled, after which the attempt counts no more: who keeps trying does not wait longer.
    """
    now = now or timezone.now()
    made = SignInFailure.objects.create(account=_hash(name), address=_hash(address), at=now)
    waits = [
        wait
        for field, most in settings.SIGN_IN_TRIES.items()
        if most and (wait := _wait(field, getattr(made, field), most, now)) is not None
    ]
    if waits:
        made.delete()
        logger.warning("Signing in was refused: it failed too often.")
        raise Throttled(max(waits))
    return made


def succeed(attempt: SignInFailure) -> None:
    """Forget what failed for an account from where it just went well; not what others tried."""
    SignInFailure.objects.filter(account=attempt.account, address=attempt.address).delete()


def sweep() -> None:
    """Delete what counts no more."""
    SignInFailure.objects.filter(at__lt=timezone.now() - settings.SIGN_IN_WINDOW).delete()


def _wait(field: str, key: str, most: int, now: datetime) -> timedelta | None:
    """Return how long an attempt, itself counted, is too many; None: it is not."""
    window = settings.SIGN_IN_WINDOW
    counted = SignInFailure.objects.filter(**{field: key}, at__gt=now - window).order_by("-at")
    one_too_many = counted.values_list("at", flat=True)[most : most + 1].first()
    return None if one_too_many is None else one_too_many + window - now


def _hash(text: str) -> str:
    # A password typed into the field for names must be readable nowhere.
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    return salted_hmac("agents.sign_in", plain, algorithm="sha256").hexdigest()
