"""Let go of what has been kept as long as the settings say, and report what went.

Of requests and calls only the texts go: their rows, with numbers and hashes, are part of how an
answer came about. A text goes when nothing names it that is young enough, so what many requests
share stays for as long as one of them does. Messages, lines and revisions are not touched, but
for whole conversations that rested long enough; these are erased as a person would do it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from memory import media
from memory.models import Blob, Cycle, Thread
from memory.services.change import Refused

from ..models import AgentProfile, AuditEntry, RequestSnapshot, SignInFailure, Turn
from .attach import waiting
from .erase import erase_thread

logger = logging.getLogger(__name__)

EXPIRED = "expire"
SERVER = "the server"
REASON = "It had rested for as long as it is kept."
#: A text is stored before what names it: one younger than this is not looked at as left behind.
SETTLED = timedelta(days=1)
AT_ONCE = 500
MOST_CONVERSATIONS = 200


def expire(*, dry_run: bool = False, at: datetime | None = None) -> Counter[str]:
    """Remove what is kept no longer, and count it by kind; with ``dry_run`` only count.

    What went is written down in the audit. A conversation in which somebody writes is left
    to the next time; so are those beyond a number that one run is bounded by.
    """
    at = at or timezone.now()
    counts: Counter[str] = Counter()
    seen: set[UUID] = set()
    for name, rested in _rested(at).items():
        found = rested.values_list("pk", flat=True)[:MOST_CONVERSATIONS]
        chosen = [pk for pk in found if pk not in seen]
        seen.update(chosen)
        counts[name] = len(chosen) if dry_run else _erase(chosen, _cutoff(name, at))
    texts = _unnamed_texts(at)
    counts["texts of requests and calls"] = len(texts) if dry_run else _delete_texts(texts, at)
    for name, rows in _rows(at).items():
        counts[name] = rows.count() if dry_run else rows.delete()[0]
    swept = (media.sweepable if dry_run else media.sweep)(keep=waiting())
    counts.update({"media": swept.media, "stray files": swept.files})
    if not dry_run and counts.total():
        AuditEntry.objects.create(at=at, actor_name=SERVER, action=EXPIRED, numbers=dict(+counts))
    return counts


def _cutoff(name: str, at: datetime) -> datetime | None:
    """Return before when something is not kept any more; None: all of it is."""
    days = settings.KEPT_DAYS[name.split()[0]]
    return at - timedelta(days=days) if days else None


def _rested(at: datetime) -> dict[str, QuerySet[Thread]]:
    """Select the conversations that rested for as long as they are kept."""
    busy = Turn.objects.filter(
        thread=OuterRef("pk"), status__in=(Turn.Status.WAITING, Turn.Status.RUNNING)
    )
    resting = Thread.objects.there().filter(~Exists(busy), is_lab=False).order_by("last_active_at")
    # With an agent that never remembers, nobody chose that a chat be temporary.
    forgetful = AgentProfile.objects.filter(remembers=False).values("slug")
    chosen = {
        "temporary conversations": resting.temporary().exclude(agent__in=forgetful),
        "conversations": resting,
    }
    return {
        name: rows.filter(last_active_at__lt=before)
        for name, rows in chosen.items()
        if (before := _cutoff(name, at)) is not None
    }


def _erase(threads: Sequence[UUID], before: datetime | None) -> int:
    """Erase conversations, but not those in which something happens now; return how many."""
    erased = 0
    for thread_id in threads:
        try:
            erase_thread(thread_id, copies=False, reason=REASON, idle_since=before)
        except Refused:
            continue  # Somebody came back to it, or erased it themselves.
        except Exception:
            # One that cannot be erased must not keep the others.
            logger.exception("The conversation %s has expired and was not erased.", thread_id)
        else:
            logger.info("The conversation %s has expired and was erased.", thread_id)
            erased += 1
    return erased


def _unnamed_texts(at: datetime) -> list[str]:
    """Return the hashes of texts that no request and no call names which is young enough."""
    calls = Cycle.objects.filter(_young("started_at", _cutoff("calls", at)))
    old = (
        Blob.objects.filter(kept_at__lt=at - SETTLED)
        .filter(~Exists(calls.filter(request_hash=OuterRef("hash"))))
        .filter(~Exists(calls.filter(reply_hash=OuterRef("hash"))))
    )
    hashes = set(old.values_list("hash", flat=True))
    if not hashes:
        return []
    requests = RequestSnapshot.objects.filter(_young("created_at", _cutoff("requests", at)))
    for blocks in requests.values_list("blocks", flat=True).iterator(AT_ONCE):
        hashes -= {block.get("hash") for block in blocks}
    return sorted(hashes)


def _young(field: str, before: datetime | None) -> Q:
    return Q() if before is None else Q(**{f"{field}__gte": before})


def _delete_texts(hashes: Sequence[str], at: datetime) -> int:
    # What somebody stored again meanwhile stays.
    settled = Blob.objects.filter(kept_at__lt=at - SETTLED)
    return sum(
        settled.filter(hash__in=hashes[start : start + AT_ONCE]).delete()[0]
        for start in range(0, len(hashes), AT_ONCE)
    )


def _rows(at: datetime) -> dict[str, QuerySet[AuditEntry] | QuerySet[SignInFailure]]:
    """Select the rows that stand for themselves."""
    found: dict[str, QuerySet[AuditEntry] | QuerySet[SignInFailure]] = {
        "failures to sign in": SignInFailure.objects.filter(at__lt=at - settings.SIGN_IN_WINDOW)
    }
    if (before := _cutoff("audit", at)) is not None:
        found["audit entries"] = AuditEntry.objects.filter(at__lt=before)
    return found
