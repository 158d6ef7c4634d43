"""Read what the home page shows of all that a person may see, in few statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Now

from agents import costs, words
from agents.access import Role, role_of, threads_for
from agents.gauges import Bar, Gauge
from agents.markers import doing
from agents.models import AgentProfile, Turn
from agents.page import REFLECTS
from agents.studio.threads.find import Filters, found
from agents.studio.threads.rows import Page, Row
from memory.models import Cycle, Resource, Thread

#: How many of the newest conversations are looked at, and shown.
LOOKED_AT = 60
RECENT = 8
MOST_RUNNING = 30


@dataclass(frozen=True)
class Running:
    """Show one turn or cycle under way."""

    key: str
    state: str
    words: str
    title: str
    href: str
    since: str
    lapsed: bool = False


@dataclass(frozen=True)
class Part:
    """Show what one of the three did today."""

    name: str
    calls: int
    read: str
    wrote: str
    cost: str


@dataclass(frozen=True)
class Level:
    """Show both gauges of a conversation as one small bar: memory left, messages right."""

    parts: tuple[Bar, ...]
    spoken: str


class Board:
    """Read the home page of one person."""

    def __init__(self, user: Any, now: datetime) -> None:
        self.user = user
        self.now = now

    @cached_property
    def resources(self) -> list[Resource]:
        """Return the person's own resources."""
        return list(Resource.objects.filter(members=self.user).order_by("key"))

    @property
    def zone(self) -> ZoneInfo:
        """Return where the person's days begin."""
        return ZoneInfo(self.resources[0].time_zone if self.resources else "UTC")

    @property
    def watch(self) -> list[str]:
        """Return what the page must hear about."""
        if role_of(self.user) >= Role.OPERATOR:
            return ["everything"]
        return [f"resource:{resource.pk}" for resource in self.resources]

    @property
    def mine(self) -> QuerySet[Thread]:
        """Select the conversations the person may see, those of the lab left out."""
        return threads_for(self.user)

    # ---- conversations

    @cached_property
    def page(self) -> Page:
        """Return the newest conversations, read together."""
        newest = found(self.mine, Filters(), self.now).select_related("resource")
        return Page(list(newest[:LOOKED_AT]), self.now, reader=self.user)

    @cached_property
    def rows(self) -> list[Row]:
        """Return what is shown of each of them."""
        return self.page.rows()

    @property
    def recent(self) -> list[tuple[Row, Level | None]]:
        """Return the newest of them, each with its level."""
        return [(row, level_of(row)) for row in self.rows[:RECENT]]

    @cached_property
    def profiles(self) -> list[AgentProfile]:
        """Return all agents."""
        return list(AgentProfile.objects.order_by("name"))

    # ---- what runs

    @cached_property
    def running(self) -> list[Running]:
        """Return the turns and cycles under way, the longest first."""
        return sorted([*self._turns(), *self._cycles()], key=lambda each: each.since)

    def _turns(self) -> Iterator[Running]:
        turns = Turn.objects.running().filter(thread__in=self.mine).select_related("thread")
        lapsed = set(Turn.objects.lapsed().values_list("pk", flat=True)[:MOST_RUNNING])
        for turn in turns.defer("draft_text").order_by("started_at")[:MOST_RUNNING]:
            yield Running(
                key=f"turn-{turn.pk}",
                state="observing",
                words="Answering",
                title=str(turn.thread),
                href=f"/chat/{turn.thread_id}/",
                since=(turn.started_at or turn.created_at).isoformat(timespec="seconds"),
                lapsed=turn.pk in lapsed,
            )

    def _cycles(self) -> Iterator[Running]:
        cycles = Cycle.objects.running().filter(thread__in=self.mine).select_related("thread")
        cycles = cycles.annotate(database_now=Now()).order_by("started_at")
        for cycle in cycles[:MOST_RUNNING]:
            kind = Cycle.Kind(cycle.kind)
            tokens = words.tokens(cycle.message_tokens or cycle.observation_tokens)
            yield Running(
                key=f"cycle-{cycle.pk}",
                state="reflecting" if kind in REFLECTS else _STATES[kind],
                words=f"{doing(kind)} {tokens} tokens",
                title=str(cycle.thread),
                href=f"/context/calls/{cycle.pk}/",
                since=cycle.started_at.isoformat(timespec="seconds"),
                lapsed=cycle.lease_expires_at < cycle.database_now,  # type: ignore[attr-defined]
            )

    # ---- what it cost

    @property
    def midnight(self) -> datetime:
        """Return when the person's day began."""
        today = self.now.astimezone(self.zone).date()
        return datetime.combine(today, time(), self.zone)

    @cached_property
    def spent(self) -> list[Part]:
        """Return what Actor, Observer and Reflector read, wrote and cost today."""
        observing = (Cycle.Kind.BUFFER, Cycle.Kind.OBSERVE)
        return [
            self._actor(),
            self._worker("Observer", observing),
            self._worker("Reflector", REFLECTS),
        ]

    def _actor(self) -> Part:
        turns = Turn.objects.filter(thread__in=self.mine, finished_at__gte=self.midnight)
        models = {profile.slug: profile.model_name for profile in self.profiles}
        calls = read = wrote = 0
        spent = costs.Spent()
        for each in costs.of_turns(turns, "thread__agent"):
            calls, read, wrote = calls + each["calls"], read + each["read"], wrote + each["wrote"]
            spent += costs.spent_on(each, models.get(each["thread__agent"], ""))
        return _role("Actor", calls, read, wrote, spent)

    def _worker(self, name: str, kinds: tuple[Cycle.Kind, ...]) -> Part:
        cycles = Cycle.objects.filter(
            thread__in=self.mine, kind__in=kinds, started_at__gte=self.midnight, input_tokens__gt=0
        )
        used = cycles.aggregate(
            calls=Count("pk"),
            read=Sum("input_tokens"),
            wrote=Sum("output_tokens"),
            dollars=Sum("cost"),
            known=Count("pk", filter=costs.PRICED),
        )
        spent = costs.Spent(
            used["dollars"] or costs.Spent().dollars, used["known"], used["calls"] - used["known"]
        )
        return _role(name, used["calls"], used["read"] or 0, used["wrote"] or 0, spent)


_STATES = {Cycle.Kind.BUFFER: "buffering", Cycle.Kind.OBSERVE: "observing"}


def _role(name: str, calls: int, read: int, wrote: int, spent: costs.Spent) -> Part:
    return Part(name, calls, words.tokens(read), words.tokens(wrote), str(spent) if calls else "–")


def level_of(row: Row) -> Level | None:
    """Return both gauges of a row as one bar; None for a conversation without memory."""
    if row.messages is None or row.observations is None:
        return None
    return Level(
        parts=(*_left(row.observations), *_right(row.messages)),
        spoken=f"Observations {row.observations.spoken}; messages {row.messages.spoken}",
    )


def _half(gauge: Gauge) -> float:
    return 50 * min(1.0, gauge.value / gauge.top) if gauge.top else 0


def _left(gauge: Gauge) -> Iterator[Bar]:
    if width := _half(gauge):
        yield Bar("kept", "0%", f"{width:.2f}%")


def _right(gauge: Gauge) -> Iterator[Bar]:
    if width := _half(gauge):
        over = "over" if gauge.value >= gauge.top else "live"
        yield Bar(over, f"{100 - width:.2f}%", f"{width:.2f}%")
