"""Trace a line: the versions it had, what it stands for, the messages behind it, who wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q

from agents import words
from agents.lines import LineShown, line_shown
from agents.markers import Fact, facts
from agents.studio.memory.asked import Asked
from agents.studio.memory.revisions import CAUSES
from memory.models import Line, Message, Observation, Revision
from memory.services.blank import MARK
from memory.services.merged import Merged, merged

MOST_MESSAGES = 60
MOST_DEPTH = 20

Span = tuple[UUID, int, int]


@dataclass(frozen=True)
class Version:
    """Show what a line said for a while, and the change that made it say so."""

    number: int
    words: str
    text: str
    clock: str
    reason: str
    current: bool


@dataclass(frozen=True)
class Evidence:
    """Show one message behind a line."""

    speaker: str
    at: str
    clock: str
    position: int
    text: str
    href: str
    erased: bool


@dataclass(frozen=True)
class Provenance:
    """Hold all that is known of where a line comes from."""

    line: LineShown
    memory: str
    said: str
    label: str
    versions: tuple[Version, ...]
    gone: str
    parents: tuple[LineShown, ...]
    children: tuple[LineShown, ...]
    exact: bool
    messages: tuple[Evidence, ...]
    more: int
    call: str
    facts: tuple[Fact, ...]


def provenance_of(line: Line) -> Provenance:
    """Return where a line comes from; it must come with its observation, record and cycle."""
    owner, zone = line.observation, ZoneInfo(line.observation.record.resource.time_zone)
    versions = _versions(line)
    told = _revisions(owner, versions)
    made = _made(owner)
    parents = made.parents.get(versions[0].pk, ()) if made and versions else ()
    children = _children(owner, versions)
    spans = _spans(line, parents)
    messages, more = _messages(spans, zone)
    return Provenance(
        line=line_shown(line, zone),
        memory=_memory(line),
        said=_said(line, zone),
        label=_label(line),
        versions=tuple(_version(each, told, zone) for each in versions),
        gone=_gone(versions, told),
        parents=tuple(line_shown(each, zone) for each in parents),
        children=tuple(line_shown(each, zone) for each in children),
        exact=made.exact if made else True,
        messages=tuple(messages),
        more=more,
        call=f"/context/calls/{owner.cycle_id}/" if owner.cycle_id else "",
        facts=tuple(facts(owner.cycle, owner)) if owner.cycle else (),
    )


def _memory(line: Line) -> str:
    owner = line.observation
    thread = owner.thread_id or owner.record.thread_id
    base = f"/memory/{thread}/" if thread else f"/memory/of/{owner.record.resource.key}/"
    asked = Asked(rev=line.until - 1 if line.until else None, opened=str(line.pk))
    return f"{base}{asked.link()}#line-{line.pk}" if line.since else base


def _said(line: Line, zone: ZoneInfo) -> str:
    if line.said_at is None:
        return "without a date"
    at = line.said_at.astimezone(zone)
    # Midnight stands for a day whose hour nobody gave.
    return words.day(at) if at.time() == time.min else f"{words.day(at)} {words.clock(at)}"


def _label(line: Line) -> str:
    """Say how exactly the messages are known."""
    owner = line.observation
    if owner.kind == Observation.Kind.NOTE:
        return "written by a person: no message stands behind it"
    if line.first_position is None:
        return "no message is named"
    if owner.kind == Observation.Kind.REFLECTION:
        return "inherited: those of the lines it was condensed from"
    whole = (owner.first_position, owner.last_position)
    if (line.first_position, line.last_position) == whole and whole[0] != whole[1]:
        return "range: all that the Observer read, since it named none"
    return "exact: named by the Observer"


def _versions(line: Line) -> list[Line]:
    rows = Line.objects.filter(
        observation=line.observation_id, ordinal=line.ordinal, since__isnull=False
    )
    return list(rows.order_by("since")) or [line]


def _revisions(owner: Observation, versions: Sequence[Line]) -> dict[int, Revision]:
    numbers = {n for line in versions for n in (line.since, line.until) if n is not None}
    rows = Revision.objects.filter(record=owner.record_id, number__in=numbers)
    return {row.number: row for row in rows.select_related("author")}


def _version(line: Line, told: dict[int, Revision], zone: ZoneInfo) -> Version:
    row = told.get(line.since or 0)
    at = row.created_at.astimezone(zone) if row else None
    return Version(
        number=line.since or 0,
        words=_change(row) if row else "Buffered, not visible to the agent yet",
        text=line.text,
        clock=f"{at.day} {at:%b %Y %H:%M}" if at else "",
        reason=row.reason if row else "",
        current=line.since is not None and line.until is None,
    )


def _change(row: Revision) -> str:
    by = f" by {row.author.get_username()}" if row.author else ""
    return f"{CAUSES[Revision.Cause(row.cause)]}{by}"


def _gone(versions: Sequence[Line], told: dict[int, Revision]) -> str:
    row = told.get(versions[-1].until or 0)
    return f"{_change(row)} at revision {row.number}" if row else ""


def _made(owner: Observation) -> Merged | None:
    if owner.kind != Observation.Kind.REFLECTION:
        return None
    return next(iter(merged([owner])), None)


def _children(owner: Observation, versions: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of the reflection that took this line's place which stand for it."""
    until = versions[-1].until
    if until is None:
        return ()
    reflections = Observation.objects.filter(
        record=owner.record_id, kind=Observation.Kind.REFLECTION, since=until
    ).select_related("cycle")
    mine = {line.pk for line in versions}
    return tuple(
        line
        for made in merged(reflections)
        for line in made.lines
        if any(parent.pk in mine for parent in made.parents[line.pk])
    )


def _spans(line: Line, parents: Sequence[Line]) -> list[Span]:
    """Return the messages behind a line; through reflections, those behind what they condensed."""
    own = _span(line)
    if line.observation.kind != Observation.Kind.REFLECTION or not parents:
        return [own] if own else []
    leaves = list(parents)
    for _ in range(MOST_DEPTH):
        inner = {
            each.observation
            for each in leaves
            if each.observation.kind == Observation.Kind.REFLECTION
        }
        if not inner:
            break
        found = {pk: up for made in merged(inner) for pk, up in made.parents.items()}
        leaves = [
            up
            for each in leaves
            for up in (found.get(each.pk, ()) if each.observation in inner else (each,))
        ]
    spans = [span for each in leaves if (span := _span(each))]
    return list(dict.fromkeys(spans)) or ([own] if own else [])


def _span(line: Line) -> Span | None:
    owner = line.observation
    thread = owner.thread_id or owner.record.thread_id
    if thread is None or line.first_position is None or line.last_position is None:
        return None
    return thread, line.first_position, line.last_position


def _messages(spans: Sequence[Span], zone: ZoneInfo) -> tuple[list[Evidence], int]:
    if not spans:
        return [], 0
    chosen = Q(pk__in=[])
    for thread, first, last in spans[:MOST_MESSAGES]:
        chosen |= Q(thread=thread, position__range=(first, last))
    rows = Message.objects.filter(chosen)
    shown = list(rows.order_by("thread", "position")[: MOST_MESSAGES + 1])
    more = rows.count() - MOST_MESSAGES if len(shown) > MOST_MESSAGES else 0
    return [_message(row, zone) for row in shown[:MOST_MESSAGES]], more


def _message(row: Message, zone: ZoneInfo) -> Evidence:
    at = row.created_at.astimezone(zone)
    payload: Any = row.payload
    return Evidence(
        speaker="User" if row.kind == Message.Kind.REQUEST else "Agent",
        at=at.isoformat(),
        clock=f"{at.day} {at:%b %Y %H:%M}",
        position=row.position,
        text=row.text,
        href=f"/chat/{row.thread_id}/?from={row.position}#message-{row.position}",
        erased=(payload.get("metadata") or {}) == MARK,
    )
