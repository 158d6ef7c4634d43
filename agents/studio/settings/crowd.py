"""Say what other options of an agent would do to its conversations, in few statements for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents import words
from agents.models import AgentProfile
from agents.studio.threads.find import Filters, found
from agents.studio.threads.rows import Page, Row
from memory.config import MemoryOptions, in_force
from memory.models import MemoryRecord, Thread
from memory.tiers import TierExceeded

from .effects import Effect, expected, in_words

MOST = 50


@dataclass(frozen=True)
class _Member:
    """Hold a conversation of the agent, and the options of its own."""

    row: Row
    own: Mapping[str, Any]
    record: MemoryRecord | None


def effect(profile: AgentProfile, options: Mapping[str, Any], now: datetime) -> Effect:
    """Return what an agent's options would do to its newest conversations."""
    mine = Thread.objects.there().filter(agent=profile.slug, remembers=True)
    page = Page(
        list(found(mine, Filters(), now).select_related("resource")[:MOST]),
        now,
    )
    members = [
        _Member(row, record.config if record else {}, record)
        for thread, row in zip(page.threads, page.rows(), strict=True)
        for record in [page.record(thread)]
    ]
    return Effect(tuple(_sentences(profile, options, members)))


def _sentences(
    profile: AgentProfile, options: Mapping[str, Any], members: list[_Member]
) -> Iterator[str]:
    over = [each for each in members if _crosses(profile, options, each)]
    if not over:
        return
    # Conversations that share a record are observed together, once.
    tokens = sum({_key(each): _pending(each) for each in over}.values())
    drafted = in_force(profile.slug, options, {})
    yield (
        f"{len(over)} of its {len(members)} newest conversations will be past the threshold: "
        f"about {words.tokens(tokens)} tokens will be observed with their next turns, "
        f"{_about(profile, drafted, tokens, len(over))}."
    )


def _crosses(profile: AgentProfile, options: Mapping[str, Any], member: _Member) -> bool:
    if member.row.messages is None or member.row.observations is None:
        return False
    lines = member.row.observations.value
    before = in_force(profile.slug, profile.memory_options, member.own).thresholds().given(lines)
    after = in_force(profile.slug, options, member.own).thresholds().given(lines)
    return before.observe > _pending(member) >= after.observe


def _key(member: _Member) -> object:
    return member.record.pk if member.record else member.row.id


def _pending(member: _Member) -> int:
    return member.row.messages.value if member.row.messages else 0


def _about(profile: AgentProfile, options: MemoryOptions, tokens: int, calls: int) -> str:
    try:
        cost = expected(options, "observer", profile.model_name, tokens=tokens // calls)
    except TierExceeded as exceeded:
        return f"which fails: {exceeded}"
    return in_words(None if cost is None else cost * calls)
