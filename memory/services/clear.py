"""Let a record show nothing any more of what it remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from memory.models import Line, Observation, ReflectionSource, Revision

from .anew import anew
from .change import (
    Refused,
    change,
    close,
    discard_buffered,
    give_up_cycles,
    give_up_reflections,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WHY = "Memory was cleared meanwhile."


@dataclass(frozen=True)
class Cleared:
    """Hold what a clear did: lines out of sight, chunks discarded, and lines that stayed.

    ``left`` counts the lines that rest on other threads too, when one of several was cleared.
    """

    revision: int
    lines: int
    chunks: int
    left: int = 0


@anew
def clear(
    record_id: UUID,
    *,
    thread_id: UUID | None = None,
    author: User | None = None,
    reason: str = "",
) -> Cleared:
    """Take all lines of a record out of sight and discard what is buffered, in one revision.

    With ``thread_id``, in a record that several threads share, only what comes from that one.
    What was observed stays covered, so its messages do not come back raw; what lies raw is
    observed in its time. Current task, suggested response and extracted values are emptied,
    for they are no lines. Restore brings the lines back. Raises Refused when there is nothing.
    """
    with change(
        record_id, Revision.Cause.CLEAR, author=author, reason=reason, thread_id=thread_id
    ) as now:
        one_of_several = thread_id if now.record.thread_id is None else None
        gone, left = _lines(record_id, now.number, one_of_several)
        chunks = discard_buffered(record_id, thread_id=one_of_several)
        waiting = give_up_reflections(record_id)
        hints = _empty_hints(record_id, one_of_several)
        if not (gone or chunks or waiting or hints):
            raise Refused("There is nothing to clear: nothing is visible or buffered.")
        close(gone, now.number)
        give_up_cycles(record_id, WHY, thread_id=one_of_several)
        return Cleared(now.number, len(gone), chunks, left)


def _lines(record_id: UUID, number: int, thread_id: UUID | None) -> tuple[list[Line], int]:
    """Return the lines to close, and how many of the thread's others stay."""
    visible = list(Line.objects.as_of(record_id, number).select_related("observation"))
    if thread_id is None:
        return visible, 0
    own = {line.pk for line in visible if line.observation.thread_id == thread_id}
    left = 0
    for line in visible:
        if line.observation.kind == Observation.Kind.REFLECTION:
            threads = threads_behind(line.observation_id)
            if threads == {thread_id}:
                own.add(line.pk)
            elif thread_id in threads:
                left += 1
    return [line for line in visible if line.pk in own], left


def threads_behind(reflection_id: UUID) -> set[UUID]:
    """Return the threads that a reflection was made from, directly or through others."""
    threads: set[UUID] = set()
    todo, seen = {reflection_id}, set()
    while todo:
        seen |= todo
        links = ReflectionSource.objects.filter(reflection__in=todo).select_related("observation")
        sources = [link.observation for link in links]
        threads |= {row.thread_id for row in sources if row.thread_id is not None}
        todo = {row.pk for row in sources if row.kind == Observation.Kind.REFLECTION} - seen
    return threads


def _empty_hints(record_id: UUID, thread_id: UUID | None) -> int:
    rows = Observation.objects.filter(record=record_id)
    if thread_id is not None:
        rows = rows.filter(thread=thread_id)
    hinting = rows.exclude(current_task="", suggested_response="", extracted={})
    return hinting.update(current_task="", suggested_response="", extracted={})
