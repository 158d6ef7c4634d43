"""Ask whether a prompt may be sent: every way in passes here.

What is counted are rows, so all processes count the same. Prompts that arrive in the same
instant do not see each other: a limit may be passed by as many.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Case, DecimalField, F, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from agents import costs
from memory.models import Cycle, Thread
from memory.models.ids import first_id
from memory.models.swift import Converter, converter

from ..limits import MINUTE, Allowance, Counted, Limits, Used, decide, midnight
from ..models import Turn
from .refusal import LimitReached

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True)
class Standing:
    """Hold how a conversation and whoever writes in it stand, before a prompt is taken.

    ``last`` is the number of the conversation's last turn, None where it has none; ``waiting``
    how many of its prompts wait. The rest is as in ``Counted``.
    """

    last: int | None
    waiting: int
    full_since: datetime | None
    busy: int


def limits() -> Limits:
    """Return the limits of this server."""
    return Limits(
        characters=settings.MESSAGE_CHARACTERS,
        sends_per_minute=settings.SENDS_PER_MINUTE,
        turns_at_once=settings.TURNS_AT_ONCE,
        **{who: Allowance(*most) for who, most in settings.PER_DAY.items()},
    )


def allow(thread_id: UUID, text: str, *, author: User | None, standing: Standing) -> None:
    """Let a prompt pass. Raises LimitReached."""
    now, most = timezone.now(), limits()
    counted = Counted(
        characters=len(text),
        full_since=standing.full_since,
        busy=standing.busy,
        **_used(thread_id, author, most, now),
    )
    if (reached := decide(most, counted, now=now)) is not None:
        raise LimitReached(reached)


#: When each person lately tried an agent out, in this process: nothing of it is stored.
_TRIED: defaultdict[int, deque[datetime]] = defaultdict(deque)


def allow_trial(text: str, *, author: User) -> None:
    """Let a prompt pass that is part of no conversation, and count it. Raises LimitReached."""
    now, most = timezone.now(), limits()
    tried = _TRIED[author.pk]
    while tried and tried[0] <= now - MINUTE:
        tried.popleft()
    sent = Turn.objects.filter(author=author, created_at__gt=now - MINUTE)
    times = sorted([*tried, *sent.values_list("created_at", flat=True)], reverse=True)
    full = times[most.sends_per_minute - 1 : most.sends_per_minute] if most.sends_per_minute else []
    counted = Counted(
        characters=len(text),
        full_since=full[0] if full else None,
        busy=0,
        **_used(None, author, most, now),
    )
    if (reached := decide(most, counted, now=now)) is not None:
        raise LimitReached(reached)
    tried.append(now)


# ---- one statement, for the number of a new turn as well: sending is to cost none more
# SQLite takes a partial index only where its condition is written out.

_STANDING = """
SELECT (SELECT MAX(number) FROM agents_turn WHERE thread_id = %s),
(SELECT COUNT(*) FROM agents_turn
 WHERE thread_id = %s AND status = 'waiting' AND status IN ('running', 'waiting')){of_author}
"""
# What a fork copied was sent once: its turns keep their author and time, up to where it began.
_OF_AUTHOR = """,
(SELECT s.created_at FROM agents_turn s JOIN memory_thread t ON t.id = s.thread_id
 WHERE s.author_id = %s AND (s.first_position IS NULL OR t.fork_position IS NULL
 OR s.first_position > t.fork_position)
 ORDER BY s.created_at DESC LIMIT 1 OFFSET %s),
(SELECT COUNT(DISTINCT thread_id) FROM agents_turn
 WHERE author_id = %s AND status IN ('waiting', 'running') AND thread_id <> %s)
"""


def stand(thread_id: UUID, author: User | None) -> Standing:
    """Return how a conversation and an author stand now; nobody's prompts are not counted."""
    key = Turn._meta.get_field("thread").get_db_prep_value(thread_id, connection)
    place = max(settings.SENDS_PER_MINUTE - 1, 0)
    asked = [] if author is None else [author.pk, place, author.pk, key]
    with connection.cursor() as cursor:
        cursor.execute(_STANDING.format(of_author=_OF_AUTHOR if asked else ""), [key, key, *asked])
        last, waiting, *rest = cursor.fetchone()
    since, busy = rest or (None, 0)
    return Standing(last, waiting, None if since is None else _when(connection.vendor)(since), busy)


@lru_cache
def _when(vendor: str) -> Converter:
    return converter(Turn._meta.get_field("created_at"))


# ---- what was used since midnight; asked only where a limit says so


def _used(
    thread_id: UUID | None, author: User | None, most: Limits, now: datetime
) -> dict[str, Used]:
    since = first_id(midnight(now))
    turns, cycles = Turn.objects.filter(pk__gte=since), Cycle.objects.filter(pk__gte=since)
    found = {}
    if most.user and author is not None:
        found["user"] = _sum(_of_turns(turns.filter(author=author)))
    if most.resource and thread_id is not None:
        of = Thread.objects.filter(pk=thread_id).values("resource")
        found["resource"] = _sum(
            _of_turns(turns.filter(thread__resource__in=of)),
            *_of_cycles(cycles.filter(record__resource__in=of)),
        )
    if most.server:
        found["server"] = _sum(_of_turns(turns), *_of_cycles(cycles))
    return found


def _sum(*parts: Used) -> Used:
    dollars = sum((part.dollars for part in parts), Decimal(0))
    return Used(sum(part.tokens for part in parts), dollars)


def _of_turns(turns: QuerySet[Turn]) -> Used:
    found = turns.order_by().aggregate(
        read=Sum(Cast(KeyTextTransform("input_tokens", "usage"), IntegerField())),
        wrote=Sum(Cast(KeyTextTransform("output_tokens", "usage"), IntegerField())),
        dollars=Sum("cost"),
    )
    return Used((found["read"] or 0) + (found["wrote"] or 0), found["dollars"] or Decimal(0))


def _of_cycles(cycles: QuerySet[Cycle]) -> Sequence[Used]:
    """Return what cycles used, model by model: what a reply did not price, the list may."""
    unpriced = Q(cost__isnull=True)
    found = (
        cycles.order_by()
        .values("model")
        .annotate(
            tokens=Sum(F("input_tokens") + F("output_tokens")),
            dollars=Coalesce(Sum("cost"), Value(Decimal(0)), output_field=_MONEY),
            read=_if(unpriced, "input_tokens"),
            wrote=_if(unpriced, "output_tokens"),
        )
    )
    return [Used(each["tokens"], each["dollars"] + _price(each)) for each in found]


def _if(condition: Q, field: str) -> Any:
    return Sum(Case(When(condition, then=F(field)), default=Value(0)))


def _price(each: Mapping[str, Any]) -> Decimal:
    if not each["read"] and not each["wrote"]:
        return Decimal(0)
    return costs.price(each["model"], each["read"], each["wrote"]) or Decimal(0)


_MONEY: DecimalField[Any, Any] = DecimalField(max_digits=20, decimal_places=6)
