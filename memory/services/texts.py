"""Store the texts of requests once, however often they are sent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from time import monotonic

from django.db import transaction

from memory.models import Blob
from memory.models.blob import digest

from .kept import Recent, recent

MOST_TEXTS = 4096
LATELY = 600.0

_texts: Recent[float] = recent(MOST_TEXTS)


def keep_texts(
    texts: Sequence[str], *, of: Hashable, clock: Callable[[], float] = monotonic
) -> None:
    """Store texts that this process did not store lately: most are sent again and again.

    ``of`` names whose they are and changes when any of it is erased, since texts may be let go
    of then, by another process too.
    """
    # Never is not "at second 0": the clock counts from the machine's start.
    now, never = clock(), -inf
    lately = now - LATELY
    named = {(of, digest(text)): text for text in texts}
    new = {key: text for key, text in named.items() if (_texts.get(key) or never) < lately}
    if new:
        Blob.objects.keep(new.values())
        transaction.on_commit(lambda: _remember(new, now), robust=True)


def _remember(keys: Iterable[Hashable], now: float) -> None:
    for key in keys:
        _texts.put(key, now)
