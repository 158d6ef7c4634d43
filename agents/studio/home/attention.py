"""Find what needs somebody: what failed, what is full, what is set wrong, what does not add up.

Everything is looked for among the newest conversations and the newest failures, so that a page
costs the same however much there is; what is left out is counted. `om verify` looks at all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache

from django.db.models import Count, Exists, F, Max, OuterRef, Q
from pydantic import ValidationError

from agents import words
from agents.access import Right, may, resources_for
from agents.models import AgentProfile, Turn
from agents.page import REFLECTS
from agents.studio.threads.rows import Row
from memory.config import merged, problems
from memory.models import Cursor, Cycle, MemoryRecord, Observation, Thread
from memory.tiers import check_name

from .board import Board

SINCE = timedelta(days=14)
MOST = 10
MOST_RECORDS = 200


@dataclass(frozen=True)
class Item:
    """Show one thing that needs somebody, and where to see to it."""

    key: str
    state: str
    words: str
    title: str
    href: str
    detail: str = ""
    does: str = "Look"
    at: str = ""


class Attention:
    """Look for what needs somebody on a person's board."""

    def __init__(self, board: Board) -> None:
        self.board = board

    @cached_property
    def items(self) -> list[Item]:
        """Return what was found, what fails first."""
        return [
            *self._failed_turns(),
            *self._failed_cycles(),
            *self._stuck(),
            *self._full(),
            *self._wrong_agents(),
            *self._wrong_records(),
            *self._orphans(),
            *self._not_adding_up(),
        ]

    def _failed_turns(self) -> Iterator[Item]:
        later = Turn.objects.filter(thread=OuterRef("thread"), number__gt=OuterRef("number"))
        later = later.exclude(status=Turn.Status.WITHDRAWN)
        bad = (Turn.Status.FAILED, Turn.Status.INTERRUPTED)
        turns = Turn.objects.filter(
            ~Exists(later),
            status__in=bad,
            thread__in=self.board.mine,
            finished_at__gte=self.board.now - SINCE,
        )
        for turn in turns.select_related("thread").order_by("-finished_at")[:MOST]:
            failed = turn.status == Turn.Status.FAILED
            yield Item(
                key=f"turn-{turn.pk}",
                state="failed" if failed else "interrupted",
                words="✕ Answer failed" if failed else "⚠ Answer interrupted",
                title=str(turn.thread),
                href=f"/chat/{turn.thread_id}/",
                detail=turn.error,
                does="Try again there",
                at=turn.finished_at.isoformat(timespec="seconds") if turn.finished_at else "",
            )

    def _failed_cycles(self) -> Iterator[Item]:
        """Yield the lanes whose latest cycle failed: what went well since needs nobody."""
        later = Cycle.objects.filter(
            record=OuterRef("record"), lane=OuterRef("lane"), started_at__gt=OuterRef("started_at")
        )
        cycles = Cycle.objects.filter(
            ~Exists(later),
            status=Cycle.Status.FAILED,
            thread__in=self.board.mine,
            record__closed_at__isnull=True,
            finished_at__gte=self.board.now - SINCE,
        )
        for cycle in cycles.select_related("thread").order_by("-finished_at")[:MOST]:
            yield self._failed_cycle(cycle)

    def _failed_cycle(self, cycle: Cycle) -> Item:
        noun = "Reflection" if cycle.kind in REFLECTS else "Observation"
        again = "it is tried again" if cycle.next_attempt_at else "it is not tried again by itself"
        how = "was interrupted" if cycle.interrupted else "failed"
        return Item(
            key=f"cycle-{cycle.pk}",
            state="interrupted" if cycle.interrupted else "failed",
            words=f"✕ {noun} {how}",
            title=str(cycle.thread),
            href=f"/context/calls/{cycle.pk}/",
            detail=f"{cycle.error} Attempt {cycle.attempt}; {again}.",
            at=cycle.finished_at.isoformat(timespec="seconds") if cycle.finished_at else "",
        )

    def _stuck(self) -> Iterator[Item]:
        for each in self.board.running:
            if each.lapsed:
                yield Item(
                    key=f"stuck-{each.key}",
                    state="interrupted",
                    words=f"⚠ {each.words}: its process stopped",
                    title=each.title,
                    href=each.href,
                    detail="It is taken over in a moment by itself.",
                    at=each.since,
                )

    # ---- full

    @cached_property
    def _observed(self) -> set[object]:
        """Return the conversations of which anything was ever observed."""
        covering = Observation.objects.filter(
            thread__in=self.board.page.ids,
            kind=Observation.Kind.OBSERVATION,
            since__isnull=False,
        )
        return set(covering.order_by().values_list("thread", flat=True).distinct())

    def _full(self) -> Iterator[Item]:
        seen = set()
        for thread, row in zip(self.board.page.threads, self.board.rows, strict=True):
            record = self.board.page.record(thread)
            key = record.pk if record else thread.pk
            item = self._too_full(thread, row) if key not in seen else None
            if item is not None:
                seen.add(key)
                yield item

    def _too_full(self, thread: Thread, row: Row) -> Item | None:
        if row.messages is None or row.observations is None:
            return None
        options = self.board.page.options(thread, self.board.page.record(thread))
        limits = options.thresholds().given(row.observations.value)
        pending = words.tokens(row.messages.value)
        if row.messages.value >= limits.ceiling:
            said = f"⚠ {pending} tokens, over the ceiling of {words.tokens(limits.ceiling)}"
            detail = "Turns wait for an observation before they are answered."
        elif row.messages.value >= limits.observe and thread.pk not in self._observed:
            said = f"⚠ {pending} tokens, and never observed"
            detail = f"It is due from {words.tokens(limits.observe)} tokens on."
        else:
            return None
        return Item(
            f"full-{thread.pk}", "interrupted", said, str(thread), f"/chat/{thread.pk}/", detail
        )

    # ---- wrong

    def _wrong_agents(self) -> Iterator[Item]:
        does = "Mend it" if may(self.board.user, Right.ADMIN) else "Look"
        for profile in self.board.profiles:
            if said := wrong_options(json.dumps(profile.memory_options)):
                href = f"/settings/agents/{profile.slug}/"
                key = f"options-{profile.slug}"
                yield Item(key, "failed", "✕ Options not in force", profile.name, href, said, does)
            if said := _wrong_model(profile):
                href, key = f"/agents/{profile.slug}/", f"model-{profile.slug}"
                yield Item(key, "failed", "✕ No such model", profile.name, href, said, does)

    def _wrong_records(self) -> Iterator[Item]:
        of_agents = {each.slug: json.dumps(each.memory_options) for each in self.board.profiles}
        records = MemoryRecord.objects.filter(
            thread__in=self.board.mine, closed_at__isnull=True
        ).exclude(config={})
        for record in records.select_related("thread").order_by("-created_at")[:MOST_RECORDS]:
            thread = record.thread
            if thread is None or thread.agent not in of_agents:
                continue
            if said := wrong_options(of_agents[thread.agent], json.dumps(record.config)):
                yield Item(
                    key=f"options-{record.pk}",
                    state="failed",
                    words="✕ Options not in force",
                    title=str(thread),
                    href=f"/settings/{thread.pk}/",
                    detail=said,
                    does="Mend them",
                )

    def _orphans(self) -> Iterator[Item]:
        known = [profile.slug for profile in self.board.profiles]
        lost = self.board.mine.exclude(agent__in=known).order_by().values("agent")
        lost = lost.annotate(count=Count("pk"), latest=Max("last_active_at"))
        for each in lost.order_by("-latest")[:MOST]:
            some = (
                "1 conversation has"
                if each["count"] == 1
                else f"{each['count']} conversations have"
            )
            yield Item(
                key=f"orphan-{each['agent']}",
                state="failed",
                words="✕ No such agent",
                title=each["agent"],
                href="/agents/",
                detail=f"{some} an agent that is gone, and cannot be answered.",
            )

    def _not_adding_up(self) -> Iterator[Item]:
        """Yield conversations that memory claims to have read further than they go."""
        resources = resources_for(self.board.user)
        beyond = Q(observed_through__gt=F("thread__last_position")) | Q(
            buffered_through__gt=F("thread__last_position")
        )
        cursors = Cursor.objects.filter(
            beyond, record__resource__in=resources, record__closed_at__isnull=True
        )
        for cursor in cursors.select_related("thread")[:MOST]:
            yield Item(
                key=f"cursor-{cursor.pk}",
                state="failed",
                words="✕ Memory does not add up",
                title=str(cursor.thread),
                href=f"/memory/{cursor.thread_id}/",
                detail="More is said to be observed than was ever said. Run om verify.",
            )


@lru_cache(maxsize=512)
def wrong_options(of_agent: str, own: str = "{}") -> str:
    """Return what is wrong with options as JSON; empty when they can be in force."""
    try:
        merged(json.loads(of_agent) or {}, json.loads(own))
    except ValidationError as error:
        return "; ".join(problems(error))
    return ""


def _wrong_model(profile: AgentProfile) -> str:
    try:
        check_name(profile.model_name)
    except ValueError as error:
        return str(error)
    return ""
