"""Destroy text, everywhere memory keeps it, and report what went.

Erased messages stay as empty markers at their positions, their tool calls and results paired,
so that coverage and pairs hold and no position is used again; the same messages in forks go
with them. Lines that rest on them go with every version they had, and so does each reflection
made from such a line: the other lines it had taken the place of are shown again. Requests and
replies kept since the text was said go too, since any of them may hold it. The epoch rises and
running cycles are given up, so that nothing under way brings the text back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Now

from memory import media
from memory.messages import dump, load, plain_text
from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)
from memory.tokens import count_message

from .anew import anew
from .blank import blank
from .change import Refused, change, give_up_cycles, give_up_reflections, line_of
from .forks import Span, copies_of, hold, hold_for_good, leave_forks
from .look import read
from .unravel import everywhere, overlapping, unravel, versions_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WHY = "Memory was erased meanwhile."
REASON_GONE = "What was said of it was erased."
CLOCKS = timedelta(minutes=1)
AT_ONCE = 500
COVERING = (Observation.Kind.OBSERVATION, Observation.Kind.DISCARDED)


@dataclass
class Erased:
    """Report what was destroyed, by kind; ``spans`` are the messages, in forks too.

    ``threads`` are those whose requests may have held the text, from ``since`` on.
    """

    counts: Counter[str] = field(default_factory=Counter)
    spans: tuple[Span, ...] = ()
    threads: set[UUID] = field(default_factory=set)
    since: datetime | None = None
    hashes: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Author:
    """Hold who erases, and why."""

    author: User | None
    reason: str


@anew
def erase_messages(
    thread_id: UUID,
    first: int = 1,
    last: int | None = None,
    *,
    copies: bool = True,
    keep: Collection[str] = (),
    author: User | None = None,
    reason: str = "",
) -> Erased:
    """Destroy messages ``first..last`` of a thread, to its end without ``last``.

    With ``copies``, in the threads it was forked from and into as well. ``keep`` are the
    hashes of media that wait to be sent. Raises Refused when there are none.
    """
    by = Author(author, reason)
    with transaction.atomic():
        thread = hold(thread_id)
        if thread is None:
            raise Refused("There is no such conversation.")
        span = Span(thread_id, first, thread.last_position if last is None else last)
        spans = copies_of(span) if copies else (span,)
        found = _messages(spans)
        if not found.exists():
            raise Refused(f"There are no messages {span.first} to {span.last} to erase.")
        report = Erased(spans=spans, since=found.aggregate(at=Min("created_at"))["at"])
        for each in spans:
            # Whoever makes its record meanwhile would keep the text under an epoch that stays.
            read(each.thread)
        for record in _records({each.thread for each in spans}):
            _in_record(record, partial(overlapping, record.pk, spans), report, by)
        _blank(found, report, keep)
        for each in spans:
            _recount(each)
        _drop_blobs(report)
    return report


@anew
def erase_line(line_id: UUID, *, author: User | None = None, reason: str = "") -> Erased:
    """Destroy a line with every version it had, what was made from it, and its copies.

    Copies are in forks, and where memory was of another scope. Of a reflection's line, the
    lines it rests on go as well. Its messages stay as they are, and stay covered. Raises
    Refused when there is no such line.
    """
    by = Author(author, reason)
    with transaction.atomic():
        line = line_of(line_id)
        record = MemoryRecord.objects.get(pk=line.observation.record_id)
        if record.thread_id is not None:
            hold(record.thread_id)  # So that nobody copies it meanwhile.
        doomed = everywhere(line)
        report = Erased(since=_since(line))
        for each in MemoryRecord.objects.filter(pk__in=doomed).order_by("pk"):
            _in_record(each, partial(versions_of, doomed[each.pk]), report, by)
        _drop_blobs(report)
    return report


def _since(line: Line) -> datetime | None:
    """Return when a line was first written, or shown if no model wrote it."""
    owner = line.observation
    if owner.cycle_id is not None:
        return Cycle.objects.get(pk=owner.cycle_id).started_at
    shown = Revision.objects.filter(record=owner.record_id, number=owner.since or 0)
    return shown.values_list("created_at", flat=True).first()


@anew
def erase_thread(
    thread_id: UUID,
    *,
    copies: bool = True,
    keep: Collection[str] = (),
    author: User | None = None,
    reason: str = "",
    last_look: Callable[[], None] = lambda: None,
) -> Erased:
    """Destroy a thread: its messages, in its forks too, and every row about it.

    ``last_look`` is called once nobody can add a row to it any more, and may raise. Raises
    Refused when there is no such thread.
    """
    with transaction.atomic():
        thread = hold(thread_id)
        if thread is None:
            raise Refused("There is no such conversation.")
        report = Erased()
        if thread.messages.exists():
            report = erase_messages(
                thread_id, copies=copies, keep=keep, author=author, reason=reason
            )
        else:
            _noted_in(thread_id, report, Author(author, reason))
        records = hold_for_good(thread_id)
        last_look()
        for record in records:
            _delete_record(record, report)
        _delete_rows_of(thread_id, report)
        _drop_blobs(report)
        leave_forks(thread)
        thread.delete()
        report.counts["threads"] += 1
        report.threads.discard(thread_id)
    return report


def _noted_in(thread_id: UUID, report: Erased, by: Author) -> None:
    """Destroy what was noted in a thread without messages, where its record is not its own."""
    rows = Observation.objects.filter(thread=thread_id).exclude(record__thread=thread_id)
    records = MemoryRecord.objects.filter(pk__in=rows.values("record")).order_by("pk")
    for record in records:
        lines = Line.objects.filter(observation__in=rows.filter(record=record))
        _in_record(record, partial(_ids, lines), report, by)


def _ids(lines: QuerySet[Line]) -> set[UUID]:
    return set(lines.values_list("pk", flat=True))


@anew
def erase_resource(resource_id: int, *, keep: Collection[str] = ()) -> Erased:
    """Destroy a resource: its threads, its memory in every scope, itself. Raises Refused."""
    with transaction.atomic():
        resource = Resource.objects.filter(pk=resource_id).first()
        if resource is None:
            raise Refused("There is no such resource.")
        report = Erased()
        threads = Thread.objects.filter(resource=resource)
        messages = Message.objects.filter(thread__in=threads)
        held = _media_of(messages.values_list("payload", flat=True))
        report.counts["messages"] = messages.count()
        for record in MemoryRecord.objects.filter(resource=resource).order_by("pk"):
            give_up_cycles(record.pk, WHY)
            _delete_record(record, report)
        messages.delete()
        report.counts["threads"] += threads.count()
        threads.update(parent=None)
        threads.delete()
        resource.delete()
        report.counts["resources"] += 1
        report.counts["media"] += len(media.destroy(held, keep=keep))
        _drop_blobs(report)
    return report


def _messages(spans: Iterable[Span]) -> QuerySet[Message]:
    chosen = Q(pk__in=[])
    for span in spans:
        chosen |= Q(thread=span.thread, position__range=(span.first, span.last))
    return Message.objects.filter(chosen)


def _records(threads: set[UUID]) -> list[MemoryRecord]:
    """Return the records, closed ones too, that know of any of some threads."""
    of_any = Q(thread__in=threads) | Q(cursors__thread__in=threads)
    # One that is shared tells every thread what the others say, before it observes any of it.
    of_any |= Q(thread__isnull=True, resource__threads__in=threads)
    by_rows = Observation.objects.filter(thread__in=threads).values("record")
    chosen = MemoryRecord.objects.filter(of_any | Q(pk__in=by_rows))
    return list(chosen.distinct().order_by("pk"))


def _in_record(
    record: MemoryRecord, seeds: Callable[[], set[UUID]], report: Erased, by: Author
) -> None:
    """Destroy lines of one record, and whatever of it may hold the text.

    ``seeds`` finds the lines once nobody else can write any: a version made meanwhile goes too.
    """
    with change(
        record.pk,
        Revision.Cause.ERASE,
        author=by.author,
        reason=by.reason,
        thread_id=record.thread_id,
        closed_too=True,
    ) as now:
        give_up_cycles(record.pk, WHY)
        _count_waiting(record, report)
        report.counts.update(unravel(seeds(), now))
        for span in report.spans:
            _empty_hints(record, span, report)
        _forget_calls(record, report)


def _count_waiting(record: MemoryRecord, report: Erased) -> None:
    report.counts["waiting reflections"] += give_up_reflections(record.pk)


def _empty_hints(record: MemoryRecord, span: Span, report: Erased) -> None:
    """Empty what was written beside the lines."""
    rows = Observation.objects.filter(
        record=record,
        thread=span.thread,
        first_position__lte=span.last,
        last_position__gte=span.first,
    )
    titles = set(rows.exclude(thread_title="").values_list("thread_title", flat=True))
    rows.update(current_task="", suggested_response="", thread_title="")
    # Each row holds all values extracted so far, so later ones may hold the text as well.
    later = Observation.objects.filter(
        record=record, thread=span.thread, last_position__gte=span.first
    )
    report.counts["extracted values"] += later.exclude(extracted={}).update(extracted={})
    Thread.objects.filter(pk=span.thread, title__in=titles, title_pinned=False).update(title="")


def _forget_calls(record: MemoryRecord, report: Erased) -> None:
    """Let go of the requests and replies that may hold the text."""
    about = Q(pk__in=[])
    if report.since is not None:
        about |= Q(started_at__gte=report.since - CLOCKS)
    for span in report.spans:
        about |= Q(thread=span.thread, first_position__lte=span.last, last_position__gte=span.first)
    # A call that several threads shared has copies in the records each of them has by now.
    calls = Cycle.objects.filter(about, record=record).values("call")
    cycles = Cycle.objects.filter(call__in=calls)
    for pair in cycles.values_list("request_hash", "reply_hash"):
        report.hashes |= {digest for digest in pair if digest}
    report.counts["calls"] += cycles.exclude(request_hash="", reply_hash="").update(
        request_hash="", reply_hash=""
    )
    cycles.exclude(error="").exclude(error=WHY).update(error=REASON_GONE)
    cycles.exclude(note="").update(note="")
    if record.thread_id is not None:
        report.threads.add(record.thread_id)
    else:
        of_all = Thread.objects.filter(resource=record.resource_id)
        report.threads |= set(of_all.values_list("pk", flat=True))


def _blank(messages: QuerySet[Message], report: Erased, keep: Collection[str]) -> None:
    """Write markers over messages, and remove the media that only they had."""
    rows = list(messages.order_by("thread", "position"))
    held = _media_of(row.payload for row in rows)
    for row in rows:
        message = load(blank(row.payload, row.created_at))
        row.payload, row.text = dump(message), plain_text(message)
        row.tokens = count_message(message)
    Message.objects.bulk_update(rows, ["payload", "text", "tokens"], batch_size=AT_ONCE)
    report.counts["messages"] += len(rows)
    report.counts["media"] += len(media.destroy(held, keep=keep))
    report.threads |= {row.thread_id for row in rows}


def _media_of(payloads: Iterable[Mapping[str, Any]]) -> set[str]:
    return {each.hash for payload in payloads for each in media.references(payload)}


def _recount(span: Span) -> None:
    """Let observations say what the messages they cover have now."""
    touching = Observation.objects.filter(
        thread=span.thread,
        kind__in=COVERING,
        first_position__lte=span.last,
        last_position__gte=span.first,
    )
    for pk, first, last in touching.values_list("pk", "first_position", "last_position"):
        tokens = Message.objects.within(span.thread, first or 0, last or 0).order_by()
        total = tokens.aggregate(total=Sum("tokens"))["total"] or 0
        Observation.objects.filter(pk=pk).update(message_tokens=total)


def _delete_record(record: MemoryRecord, report: Erased) -> None:
    """Delete a record with all of its rows."""
    rows = Observation.objects.filter(record=record)
    cycles = Cycle.objects.filter(record=record)
    for pair in cycles.values_list("request_hash", "reply_hash"):
        report.hashes |= {digest for digest in pair if digest}
    report.counts["lines"] += Line.objects.filter(observation__in=rows).count()
    report.counts["observations"] += rows.count()
    report.counts["cycles"] += cycles.count()
    Revision.objects.filter(record=record).delete()
    rows.delete()
    cycles.delete()
    Cursor.objects.filter(record=record).delete()
    record.delete()
    report.counts["records"] += 1


def _delete_rows_of(thread_id: UUID, report: Erased) -> None:
    """Delete what records that several threads share know of one of them."""
    rows = Observation.objects.filter(thread=thread_id)
    cycles = Cycle.objects.filter(thread=thread_id)
    watching = cycles.filter(kind__in=(Cycle.Kind.BUFFER, Cycle.Kind.OBSERVE))
    report.counts["observations"] += rows.count()
    records = set(rows.values_list("record", flat=True))
    Line.objects.filter(observation__in=rows).delete()
    rows.delete()
    _place_anew(records)
    cycles.running().update(status=Cycle.Status.DISCARDED, error=WHY, finished_at=Now())
    Revision.objects.filter(cycle__in=watching).update(cycle=None)
    report.counts["cycles"] += watching.count()
    watching.delete()
    cycles.update(thread=None)


def _place_anew(records: set[UUID]) -> None:
    """Let each reflection stand where its last source does, when it may have lost one."""
    shown = Observation.objects.filter(record__in=records, kind=Observation.Kind.REFLECTION)
    for row in shown.exclude(since=None).order_by("since"):
        sources = ReflectionSource.objects.filter(reflection=row)
        place = sources.aggregate(last=Max("observation__place"))["last"]
        if place not in (None, row.place):
            Observation.objects.filter(pk=row.pk).update(place=place)


def _drop_blobs(report: Erased) -> None:
    """Delete the texts that nothing else was asked or answered with."""
    report.counts["texts"] += Blob.objects.let_go(report.hashes, used=asked)
    report.hashes = set()


def asked(hashes: set[str]) -> set[str]:
    """Return those of some texts that a cycle was asked or answered with.

    One that runs, or was given up, keeps none: it would store its text when it ends.
    """
    ended = Cycle.objects.filter(status__in=(Cycle.Status.DONE, Cycle.Status.FAILED))
    calls = ended.filter(Q(request_hash__in=hashes) | Q(reply_hash__in=hashes))
    pairs = calls.values_list("request_hash", "reply_hash")
    return {digest for pair in pairs for digest in pair}
