"""Read who changed options, when, and what they were before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents import words
from agents.changes import AgentChange
from memory.models import MemoryRecord, Revision
from memory.services.configure import REMEMBERS

from .fields import FIELDS

MOST = 30
UNSET = "not set"


@dataclass(frozen=True)
class Difference:
    """Show one option before and after a change."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Happened:
    """Show one change; ``back`` is what the options of that moment are gone back to by."""

    key: str
    said: str
    who: str
    at: str
    ago: str
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    back: str = ""


def of_record(record: MemoryRecord | None, now: datetime) -> list[Happened]:
    """Return the newest changes of a memory's options and scope, newest first."""
    if record is None:
        return []
    causes = (Revision.Cause.CONFIG, Revision.Cause.SCOPE)
    rows = Revision.objects.filter(record=record, cause__in=causes).select_related("author")
    found = [_revision(each, now) for each in rows.order_by("-number")[:MOST]]
    return _offered(found, first="0")


def of_agent(changes: Sequence[AgentChange], now: datetime) -> list[Happened]:
    """Return the changes of an agent's options, newest first."""
    found = [_change(each, now) for each in changes]
    return _offered(found, first="first")


def of_fields(slug: str, now: datetime) -> list[Happened]:
    """Return the newest changes of an agent's fields, newest first."""
    rows = AgentChange.objects.filter(agent__slug=slug).select_related("author")
    return [
        Happened(
            key=f"change-{each.pk}",
            said=", ".join(_FIELDS.get(name, name) for name in each.fields) or "Nothing",
            who=str(each.author or ""),
            at=each.created_at.isoformat(timespec="seconds"),
            ago=words.ago(now, each.created_at),
        )
        for each in rows.order_by("-created_at", "-pk")[:MOST]
    ]


_FIELDS = {"memory_options": "memory options", "remembers": "memory on or off"}


def _offered(found: list[Happened], *, first: str) -> list[Happened]:
    """Let each change but the newest be gone back to, and what was before all of them."""
    if not found:
        return []
    newest, *older = found
    kept = [Happened(**{**vars(newest), "back": ""}), *older]
    if len(found) < MOST:
        kept.append(Happened("first", "Before all changes", "", "", "", back=first))
    return kept


def _revision(revision: Revision, now: datetime) -> Happened:
    moved = revision.cause == Revision.Cause.SCOPE
    return Happened(
        key=f"revision-{revision.number}",
        said=f"Revision {revision.number}" + (" · scope changed" if moved else ""),
        who=str(revision.author or ""),
        at=revision.created_at.isoformat(timespec="seconds"),
        ago=words.ago(now, revision.created_at),
        reason=revision.reason,
        differences=tuple(differences(revision.options)),
        back=str(revision.number),
    )


def _change(change: AgentChange, now: datetime) -> Happened:
    options = change.fields.get("memory_options", {})
    return Happened(
        key=f"change-{change.pk}",
        said="Options changed",
        who=str(change.author or ""),
        at=change.created_at.isoformat(timespec="seconds"),
        ago=words.ago(now, change.created_at),
        differences=tuple(differences(options)),
        back=str(change.pk),
    )


def differences(options: Mapping[str, Mapping[str, Any]]) -> Iterator[Difference]:
    """Yield what changed, in the words of the page."""
    for name, each in options.items():
        if name == REMEMBERS:
            on_off = {True: "on", False: "off"}
            yield Difference("Memory", on_off[each["before"]], on_off[each["after"]])
        else:
            yield Difference(_label(name), _text(name, each, "before"), _text(name, each, "after"))


def _label(name: str) -> str:
    return FIELDS[name].label if name in FIELDS else name


def _text(name: str, values: Mapping[str, Any], when: str) -> str:
    if when not in values:
        return UNSET
    try:
        said = FIELDS[name].text.show(values[when])
    except (AttributeError, LookupError, TypeError, ValueError):
        # Options once stored by hand can be anything: then as they are.
        said = str(values[when])
    return words.first_words(said, 200) or "empty"
