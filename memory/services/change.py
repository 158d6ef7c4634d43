"""Change what a record shows, as one revision: nothing is written unless all of it is.

A change takes the record's row first, so that one writer at a time goes through, and raises
the epoch, so that cycles begun before it give up. A person is not sent away because somebody
changed another line meanwhile: what counts is whether the line at hand is as they saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from memory.dispatch import dispatch
from memory.events import CHANGED, CycleFailed
from memory.messages import safe_text
from memory.models import Cursor, Cycle, Line, MemoryRecord, Observation, Revision, Thread
from memory.models.record import RecordMoved
from memory.publish import publish

from .sizes import tokens_at

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LONGEST_TEXT = 10_000
LONGEST_REASON = 1_000
ATTEMPTS = 20

Lock = Callable[[MemoryRecord], object]


class Refused(ValueError):
    """Say in one sentence why memory cannot be changed like this; nothing was written."""


class Stale(Refused):
    """Say that a line is no longer what the caller saw, with both texts, so that none is lost.

    ``yours`` is what the caller wanted it to say, ``theirs`` what it says now: None when it
    is out of sight. ``current`` is the visible version, if any.
    """

    def __init__(self, sentence: str, *, yours: str, current: Line | None) -> None:
        super().__init__(sentence)
        self.yours = yours
        self.current = current
        self.theirs = None if current is None else current.text


@dataclass(frozen=True)
class Change:
    """Hold a change under way: its record, and the revision it makes."""

    record: MemoryRecord
    number: int


@contextmanager
def change(
    record_id: UUID,
    cause: Revision.Cause,
    *,
    author: User | None = None,
    reason: str = "",
    thread_id: UUID | None = None,
    trigger: str = "",
    epochs: int = 1,
    closed_too: bool = False,
) -> Iterator[Change]:
    """Make one revision of everything the block does, with its event after the commit.

    Raises Refused when the record is closed, unless ``closed_too``, or the reason too long.
    """
    if len(reason) > LONGEST_REASON:
        raise Refused(
            f"The reason has {len(reason):,} characters; at most {LONGEST_REASON:,} are kept."
        )
    with transaction.atomic():
        record = _taken(record_id, epochs, closed_too)
        number = record.revision
        before = tokens_at(record_id, number - 1)
        yield Change(record, number)
        Revision.objects.create(
            record=record,
            number=number,
            cause=cause,
            author=author,
            thread_id=thread_id,
            trigger=trigger,
            reason=safe_text(reason.strip()),
            tokens_before=before,
            tokens_after=tokens_at(record_id, number),
        )
        _tell(record, cause, thread_id)


def held(record_id: UUID) -> MemoryRecord:
    """Return an open record with its row locked, for reading it while nobody writes.

    Must run inside a transaction. Raises Refused when it is closed.
    """
    return _locked(record_id, lambda record: record.hold())


def _taken(record_id: UUID, epochs: int, closed_too: bool) -> MemoryRecord:
    closed = MemoryRecord.objects.filter(pk=record_id, closed_at__isnull=False)
    if closed_too and closed.update(revision=F("revision") + 1, epoch=F("epoch") + epochs):
        return MemoryRecord.objects.get(pk=record_id)
    return _locked(record_id, lambda record: record.advance(epochs=epochs))


def _locked(record_id: UUID, lock: Lock) -> MemoryRecord:
    for _ in range(ATTEMPTS):
        record = MemoryRecord.objects.filter(pk=record_id).first()
        if record is None:
            raise Refused("There is no such memory.")
        if record.closed_at is not None:
            raise Refused("This memory is closed: its scope was changed, and another took over.")
        try:
            lock(record)
        except RecordMoved:
            continue  # Somebody else's change came first; ours is compared with it line by line.
        record.refresh_from_db()
        return record
    raise Refused("This memory is being changed by others all the time. Try again.")


def _tell(record: MemoryRecord, cause: Revision.Cause, thread_id: UUID | None) -> None:
    thread = thread_id or thread_of(record)
    if thread is None:
        return
    if (event := CHANGED.get(cause)) is not None:
        publish(event(thread=thread, record=record.pk, revision=record.revision))
    dispatch(thread)


def thread_of(record: MemoryRecord) -> UUID | None:
    """Return a thread whose pages show the record: its own, or its resource's latest."""
    if record.thread_id is not None:
        return record.thread_id
    latest = Thread.objects.filter(resource=record.resource_id).order_by("-last_active_at")
    return latest.values_list("pk", flat=True).first()


def line_of(line_id: UUID) -> Line:
    """Return a line with its observation. Raises Refused when there is none."""
    line = Line.objects.select_related("observation").filter(pk=line_id).first()
    if line is None:
        raise Refused("There is no such line: it was erased.")
    return line


def lines_of(line_ids: UUID | Sequence[UUID]) -> list[Line]:
    """Return lines of one record, in the order asked. Raises Refused."""
    ids = [line_ids] if isinstance(line_ids, UUID) else list(dict.fromkeys(line_ids))
    found = Line.objects.select_related("observation").in_bulk(ids)
    if not ids:
        raise Refused("Choose a line first.")
    if len(found) != len(ids):
        raise Refused("There is no such line: it was erased.")
    lines = [found[line_id] for line_id in ids]
    if len({line.observation.record_id for line in lines}) != 1:
        raise Refused("Choose lines of one memory.")
    return lines


def compare(line: Line, *, yours: str = "", expected: int | None = None) -> None:
    """Raise Stale unless a line is visible now, and was at the revision the caller saw.

    Must run inside a change, whose lock keeps it so.
    """
    now = Line.objects.filter(pk=line.pk).values_list("since", "until").first()
    _compared(line, now, yours, expected)


def compare_all(lines: Sequence[Line], *, expected: int | None = None) -> None:
    """Raise Stale unless all lines are visible now, and were at the revision the caller saw.

    One statement, however many there are. Must run inside a change, as compare must.
    """
    rows = Line.objects.filter(pk__in=[line.pk for line in lines])
    now = {pk: (since, until) for pk, since, until in rows.values_list("pk", "since", "until")}
    for line in lines:
        _compared(line, now.get(line.pk), line.text, expected)


def _compared(
    line: Line, now: tuple[int | None, int | None] | None, yours: str, expected: int | None
) -> None:
    if now is None:
        raise Refused("There is no such line: it was erased.")
    since, until = now
    if since is None:
        raise Refused("This line is not shown yet. It can be changed once it is.")
    if until is None and (expected is None or since <= expected):
        return
    line.until = until  # It was read before the lock, and whoever was first ended it meanwhile.
    current = current_version(line)
    if current is None:
        sentence = "This line is not visible any more: it was forgotten or condensed meanwhile."
    else:
        sentence = "Somebody changed this line meanwhile."
    raise Stale(sentence, yours=yours, current=current)


def current_version(line: Line) -> Line | None:
    """Return the visible version of a line, following its successors; None when none is."""
    latest: Line | None = line
    while latest is not None and latest.until is not None:
        latest = Line.objects.filter(replaces=latest.pk, since__isnull=False).first()
    return latest


def close(lines: Sequence[Line], number: int) -> None:
    """End lines at a revision. Raises Stale, which rolls all back, when one has ended."""
    ids = [line.pk for line in lines]
    open_lines = Line.objects.filter(pk__in=ids, since__lt=number, until__isnull=True)
    if open_lines.update(until=number) != len(ids):
        raise Stale("Somebody changed these lines meanwhile.", yours="", current=None)


def succeed(line: Line, number: int, *, like: Line | None = None, **changes: object) -> Line:
    """Return an unsaved successor of a line that begins at a revision, in its place.

    It says what ``like`` says, which is the line itself when not given, but for the changes.
    """
    model = like or line
    values: dict[str, object] = {
        "kind": model.kind,
        "said_at": model.said_at,
        "text": model.text,
        "tokens": model.tokens,
        "first_position": model.first_position,
        "last_position": model.last_position,
        "pinned": model.pinned,
        **changes,
    }
    return Line(
        observation_id=line.observation_id,
        ordinal=line.ordinal,
        since=number,
        replaces_id=line.pk,
        **values,
    )


def checked_text(text: str) -> str:
    """Return the text of a line as it can be stored. Raises Refused."""
    if not text.strip():
        raise Refused("The line is empty. To take it out of sight, forget it.")
    if len(text) > LONGEST_TEXT:
        raise Refused(
            f"The line has {len(text):,} characters; at most {LONGEST_TEXT:,} fit. "
            "Make two lines of it."
        )
    return safe_text(text.strip())


def checked_kind(kind: str) -> str:
    """Return the kind of a line. Raises Refused, naming those there are."""
    if str(kind) not in Line.Kind.values:
        raise Refused(f"There is no kind “{kind}”; use {', '.join(Line.Kind.values)}.")
    return str(kind)


def give_up_cycles(record_id: UUID, why: str, *, thread_id: UUID | None = None) -> int:
    """End the running cycles of a record, so that nothing they know is written; return how many."""
    running = Cycle.objects.running().filter(record=record_id)
    ended = 0
    for pk, thread in list(running.values_list("pk", "thread")):
        if thread_id in (None, thread):
            done = Cycle.objects.running().filter(pk=pk)
            ended += done.update(status=Cycle.Status.DISCARDED, error=why, finished_at=Now())
            if thread is not None:
                publish(CycleFailed(thread=thread, record=record_id, cycle=pk))
    return ended


def give_up_reflections(record_id: UUID) -> int:
    """Discard the reflection that waits for activation, if any; return how many."""
    return Observation.objects.waiting_reflections(record_id).update(discarded_at=Now())


def discard_buffered(record_id: UUID, *, thread_id: UUID | None = None) -> int:
    """Discard what is buffered of a record or one of its threads; return how many rows.

    All of a thread goes at once and its cursor goes back to what is observed: the sole case.
    """
    buffered = Observation.objects.buffered(record_id)
    cursors = Cursor.objects.filter(record=record_id)
    if thread_id is not None:
        buffered, cursors = buffered.filter(thread=thread_id), cursors.filter(thread=thread_id)
    cursors.update(buffered_through=F("observed_through"))
    return buffered.order_by().update(kind=Observation.Kind.DISCARDED, discarded_at=Now())
