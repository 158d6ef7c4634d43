"""Read a thread and its memory as of one revision.

The read rule: the record's revision ``n`` is read first, and everything else as of ``n``.
Rows and cursor read one after the other would show a message twice, or not at all, while
another process activates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import F, Max, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce

from memory.config import MemoryOptions, effective
from memory.engine import values
from memory.engine.cuts import Pending
from memory.engine.lifecycle import Chunk, Row, Snapshot
from memory.models import Line, MemoryRecord, Message, Observation, Thread

_RETURNS = ("tool-return", "retry-prompt")


@dataclass(frozen=True)
class View:
    """Hold a thread and its record as of ``revision``.

    ``raw`` are the message rows above ``observed_through``, ``lines`` the visible lines in
    order, ``buffered`` the observations that wait for activation.
    """

    thread: Thread
    record: MemoryRecord
    options: MemoryOptions
    zone: ZoneInfo
    observed_through: int
    hints: values.Hints
    raw: Sequence[Message] = ()
    lines: Sequence[Line] = ()
    buffered: Sequence[Observation] = ()
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def revision(self) -> int:
        """Return the revision everything here is as of."""
        return self.record.revision

    @property
    def tokens(self) -> int:
        """Return the tokens of all visible lines."""
        return sum(line.tokens for line in self.lines)

    def snapshot(self, **state: Any) -> Snapshot:
        """Return what the engine decides on; ``state`` are its flags."""
        return Snapshot(
            pending=tuple(pending_of(message) for message in self.raw),
            chunks=tuple(_chunk(observation) for observation in self.buffered),
            rows=tuple(_rows(self.lines)),
            observation_tokens=self.tokens,
            **state,
        )


def record_of(thread: Thread) -> MemoryRecord:
    """Return the thread's open record, made now if there is none."""
    found = _records(thread.pk).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            MemoryRecord.objects.create(resource_id=thread.resource_id, thread=thread)
    except IntegrityError:
        pass  # Another process made it first; that one is as good.
    return _records(thread.pk).get()


def look(thread_id: UUID) -> View | None:
    """Return the thread and its memory now; None when the thread does not remember."""
    thread = Thread.objects.select_related("resource").get(pk=thread_id)
    return view_of(thread) if thread.remembers else None


def view_of(thread: Thread, record: MemoryRecord | None = None) -> View:
    """Return a remembering thread and its memory now, in four statements."""
    record = record or record_of(thread)
    observed: int = record.observed_through  # type: ignore[attr-defined]
    return View(
        thread=thread,
        record=record,
        options=effective(thread.agent, record.config),
        zone=ZoneInfo(thread.resource.time_zone),
        observed_through=observed,
        hints=values.Hints(record.task or "", record.suggestion or "", thread.title),  # type: ignore[attr-defined]
        raw=list(Message.objects.above(thread.pk, observed)),
        lines=visible_lines(record.pk, record.revision),
        buffered=_waiting(record, thread.pk, observed),
    )


def visible_lines(record_id: UUID, revision: int) -> list[Line]:
    """Return the lines the Actor sees at a revision, in order."""
    lines = Line.objects.as_of(record_id, revision).in_order()
    return list(lines.annotate(of_kind=F("observation__kind")))


def _records(thread_id: UUID) -> Any:
    """Select the open record with all that must be read as of its own revision."""
    shown = Observation.objects.filter(
        record=OuterRef("pk"), thread=thread_id, since__lte=OuterRef("revision")
    )
    through = shown.filter(kind=Observation.Kind.OBSERVATION).order_by().values("record")
    newest = shown.order_by("-last_position")
    return MemoryRecord.objects.filter(
        scope=MemoryRecord.Scope.THREAD, thread=thread_id, closed_at__isnull=True
    ).annotate(
        observed_through=Coalesce(
            Subquery(through.annotate(top=Max("last_position")).values("top")), Value(0)
        ),
        task=Subquery(newest.exclude(current_task="").values("current_task")[:1]),
        suggestion=Subquery(newest.exclude(suggested_response="").values("suggested_response")[:1]),
    )


def _waiting(record: MemoryRecord, thread_id: UUID, observed: int) -> list[Observation]:
    # Read after the record, so a row may have become visible meanwhile: what counts is
    # whether it was as of our revision, which its range tells.
    return list(
        Observation.objects.filter(
            record=record,
            thread=thread_id,
            kind=Observation.Kind.OBSERVATION,
            first_position__gt=observed,
        ).order_by("first_position")
    )


def pending_of(message: Message) -> Pending:
    """Return what the engine needs to know of a stored message to cut before or after it."""
    parts = message.payload["parts"]
    return Pending(
        position=message.position,
        kind=values.MessageKind(message.kind),
        tokens=message.tokens,
        calls=frozenset(p["tool_call_id"] for p in parts if p["part_kind"] == "tool-call"),
        returns=frozenset(
            p["tool_call_id"] for p in parts if p["part_kind"] in _RETURNS and p.get("tool_name")
        ),
    )


def line_value(line: Line) -> values.Line:
    """Return a stored line as the engine reads it."""
    return values.Line(
        id=line.pk,
        observation=line.observation_id,
        kind=values.LineKind(line.kind),
        text=line.text,
        tokens=line.tokens,
        said_at=line.said_at,
        first_position=line.first_position,
        last_position=line.last_position,
        pinned=line.pinned,
    )


def _chunk(observation: Observation) -> Chunk:
    assert observation.first_position is not None
    assert observation.last_position is not None
    return Chunk(
        id=observation.pk,
        first_position=observation.first_position,
        last_position=observation.last_position,
        message_tokens=observation.message_tokens,
        tokens=observation.tokens,
    )


def _rows(lines: Sequence[Line]) -> list[Row]:
    loose = [
        line
        for line in lines
        if not line.pinned and line.of_kind != Observation.Kind.NOTE  # type: ignore[attr-defined]
    ]
    return [
        Row(observation, sum(line.tokens for line in of_one))
        for observation, of_one in groupby(loose, key=lambda line: line.observation_id)
    ]
