"""Begin a thread as a copy of another one up to a position, with what was remembered of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from memory.dispatch import dispatch
from memory.events import ThreadForked
from memory.messages import safe_text
from memory.models import Cursor, MemoryRecord, Message, Observation, Revision, Thread
from memory.publish import publish

from .anew import anew
from .carry import Carrier, Selection, Whole, begin
from .change import Refused, change, held
from .share import parents_in, telling
from .shelve import LONGEST_TITLE

if TYPE_CHECKING:
    from django.contrib.auth.models import User

AT_ONCE = 500
RETURNS = ("tool-return", "retry-prompt")
Kind = Observation.Kind


@anew
def fork(
    thread_id: UUID,
    position: int,
    *,
    title: str = "",
    author: User | None = None,
    reason: str = "",
) -> Thread:
    """Return a new thread that holds the messages up to a position, at the same positions.

    It remembers what was made of them alone: observations that end by then with the lines
    that are visible of them now, buffered ones still buffered, the rest raw; nothing of the
    branch left behind. Position 0 begins anew. In resource scope the record is shared and
    shows the lines already: there the copied messages that are observed count as covered,
    and no line is copied. Raises Refused, naming the nearest places, where no step ends.
    """
    with transaction.atomic():
        # Held still: what is erased of it meanwhile must not come along.
        kept = Thread.objects.select_for_update(of=("self",), no_key=True)
        parent = kept.select_related("resource").filter(pk=thread_id).first()
        if parent is None:
            raise Refused("There is no such conversation.")
        record = _record(parent)
        _legal(parent, position)
        child = _thread(parent, position, title)
        _copy_messages(parent, child, position)
        if record is not None and record.thread_id is None:
            _cover(record, parent, child, position, author=author, reason=reason)
        elif record is not None:
            _remember(record, parent, child, position, author=author, reason=reason)
        publish(
            ThreadForked(
                thread=thread_id,
                record=None if record is None else record.pk,
                fork=child.pk,
                position=position,
            )
        )
        dispatch(child.pk)
    return child


def cuts(thread_id: UUID) -> list[int]:
    """Return the positions a thread may be forked at, ascending, without 0."""
    return list(_cuts(_parts(thread_id)))


def _record(parent: Thread) -> MemoryRecord | None:
    """Return the record the thread's memory is in, with its row locked; None without one."""
    if not parent.remembers:
        return None
    records = MemoryRecord.objects.filter(closed_at__isnull=True)
    found = (
        records.filter(thread=parent).first()
        or records.filter(resource=parent.resource_id, thread__isnull=True)
        .filter(cursors__thread=parent)
        .first()
    )
    return None if found is None else held(found.pk)


Step = tuple[int, bool, set[str], set[str]]


def _parts(thread_id: UUID) -> Iterator[Step]:
    """Yield each message's position, whether it answers, and the calls it opens and closes."""
    messages = Message.objects.filter(thread=thread_id).order_by("position")
    rows = messages.values_list("position", "kind", "payload")
    for position, kind, payload in rows.iterator(chunk_size=AT_ONCE):
        parts = payload["parts"]
        calls = {p["tool_call_id"] for p in parts if p["part_kind"] == "tool-call"}
        returns = {
            p["tool_call_id"] for p in parts if p["part_kind"] in RETURNS and p.get("tool_name")
        }
        yield position, kind == Message.Kind.RESPONSE, calls, returns


def _cuts(steps: Iterable[Step]) -> Iterator[int]:
    """Yield the positions after which no call waits and no prompt is without what follows."""
    waiting: set[str] = set()
    prompt: int | None = None
    for position, answers, calls, returns in steps:
        if prompt is not None and not answers:
            yield prompt
        waiting = (waiting | calls) - returns
        ended = not waiting and (answers or bool(returns))
        prompt = None if waiting or ended else position
        if ended:
            yield position


def _legal(parent: Thread, position: int) -> None:
    if position == 0:
        return
    legal = cuts(parent.pk)
    if position in legal:
        return
    near = [max((p for p in legal if p < position), default=0)]
    near += [p for p in legal if p > position][:1]
    raise Refused(
        f"No step ends at position {position}. The nearest to fork at: "
        f"{' and '.join(map(str, near))}."
    )


def _thread(parent: Thread, position: int, title: str) -> Thread:
    return Thread.objects.create(
        resource_id=parent.resource_id,
        title=safe_text(title.strip())[:LONGEST_TITLE] or parent.title,
        title_pinned=bool(title.strip()) or parent.title_pinned,
        agent=parent.agent,
        remembers=parent.remembers,
        last_position=position,
        parent=parent,
        fork_position=position,
        is_lab=parent.is_lab,
    )


def _copy_messages(parent: Thread, child: Thread, position: int) -> None:
    batch: list[Message] = []
    for message in Message.objects.within(parent.pk, 1, position).iterator(chunk_size=AT_ONCE):
        message.pk, message.thread_id = None, child.pk
        batch.append(message)
        if len(batch) == AT_ONCE:
            Message.objects.bulk_create(batch)
            batch = []
    Message.objects.bulk_create(batch)


def _remember(
    source: MemoryRecord,
    parent: Thread,
    child: Thread,
    position: int,
    *,
    author: User | None,
    reason: str,
) -> None:
    """Give the new thread a record of its own, which goes on from its parent's revision."""
    number = max(source.revision, 1)
    record = MemoryRecord.objects.create(
        resource_id=child.resource_id, thread=child, config=source.config
    )
    carrier = Carrier(record, number, {parent.pk: child.pk}, trigger="fork")
    carrier.carry(Selection(Whole(source.pk), lambda row: (row.last_position or 0) <= position))
    begin(
        record,
        Revision.Cause.FORK,
        number,
        thread=child,
        author=author,
        reason=safe_text(reason.strip()),
    )


def _cover(
    record: MemoryRecord,
    parent: Thread,
    child: Thread,
    position: int,
    *,
    author: User | None,
    reason: str,
) -> None:
    """Say that a shared record covers the copied messages it has observed, by the parent's lines.

    What lies raw at the fork belongs to both threads, and each observes its own.
    """
    rows = telling(Whole(record.pk), parent.pk, parents_in(parent.resource_id), position)
    through = sorted(
        (row for row in rows if row.since is not None), key=lambda row: row.last_position or 0
    )
    if not through:
        Cursor.objects.create(record=record, thread=child)
        return
    with change(
        record.pk,
        Revision.Cause.FORK,
        author=author,
        reason=reason,
        thread_id=child.pk,
        epochs=0,
    ) as now:
        last = through[-1].last_position or 0
        Observation.objects.create(
            record=record,
            thread=child,
            kind=Kind.OBSERVATION,
            first_position=through[0].first_position,
            last_position=last,
            message_tokens=sum(row.message_tokens for row in through),
            current_task=_latest(through, "current_task"),
            suggested_response=_latest(through, "suggested_response"),
            extracted=through[-1].extracted,
            place=now.number,
            since=now.number,
        )
        Cursor.objects.create(
            record=record, thread=child, buffered_through=last, observed_through=last
        )


def _latest(rows: Sequence[Observation], name: str) -> str:
    return next((value for row in reversed(rows) if (value := getattr(row, name))), "")
