"""Erase what conversations keep beside memory: prompts, drafts and what requests contained."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from memory import media
from memory.models import Blob, Line, Resource, Revision, Thread
from memory.services import erase as memory
from memory.services.anew import anew
from memory.services.blank import ERASED
from memory.services.change import Refused
from memory.services.erase import Erased
from memory.services.forks import Span, copies_of

from ..models import RequestSnapshot, Turn, TurnQuerySet
from .attach import waiting
from .send import withdraw
from .told import KINDS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Status = Turn.Status
BUSY = "An answer is being written in this conversation. Stop it first."
BUSY_COPY = "An answer is being written in “{}”, which has copies of these messages. Stop it first."


@anew
@transaction.atomic
def erase_messages(
    thread_id: UUID,
    first: int = 1,
    last: int | None = None,
    *,
    copies: bool = True,
    author: User | None = None,
    reason: str = "",
) -> Erased:
    """Destroy messages of a thread, with all memory, prompts and requests that hold them.

    Raises Refused when there are none, or a turn of the conversation is running, or of one whose
    copies go with them: who answers has the text at hand, and would send it with the next step.
    """
    _idle(thread_id)
    if copies:
        _idle_copies(thread_id, first, last)
    report = memory.erase_messages(
        thread_id, first, last, copies=copies, keep=waiting(), author=author, reason=reason
    )
    _turns(report)
    _requests(report)
    return report


@anew
@transaction.atomic
def erase_line(line_id: UUID, *, author: User | None = None, reason: str = "") -> Erased:
    """Destroy a line of memory with what was made from it, and the requests that held it."""
    report = memory.erase_line(line_id, author=author, reason=reason)
    _requests(report)
    return report


@anew
@transaction.atomic
def erase_thread(
    thread_id: UUID,
    *,
    copies: bool = True,
    author: User | None = None,
    reason: str = "",
    idle_since: datetime | None = None,
) -> Erased:
    """Destroy a conversation with everything about it. Raises Refused as ``erase_messages`` does.

    With ``idle_since`` also when anything happened in it from then on, or a prompt waits.
    """
    _idle(thread_id)
    if copies:
        _idle_copies(thread_id)
    own = Turn.objects.filter(thread=thread_id)
    turns, blocks = own.count(), _blocks(RequestSnapshot.objects.filter(turn__in=own))
    requests, files = RequestSnapshot.objects.filter(turn__in=own).count(), _files(own)
    report = memory.erase_thread(
        thread_id,
        copies=copies,
        keep=waiting(),
        author=author,
        reason=reason,
        last_look=lambda: _last_look(thread_id, idle_since),
    )
    report.counts.update({"turns": turns, "requests": requests})
    report.counts["media"] += len(media.destroy(files, keep=waiting()))
    _turns(report)
    _requests(report, blocks)
    return report


@anew
@transaction.atomic
def erase_resource(resource: Resource) -> Erased:
    """Destroy a resource with all of its conversations and memory. Raises Refused."""
    threads = Thread.objects.filter(resource=resource)
    for thread_id in threads.values_list("pk", flat=True):
        _idle(thread_id)
    began = threads.aggregate(at=Min("created_at"))["at"]
    turns = Turn.objects.filter(thread__resource=resource)
    snapshots = RequestSnapshot.objects.filter(turn__in=turns)
    counts = {"turns": turns.count(), "requests": snapshots.count()}
    blocks, files = _blocks(snapshots), _files(turns)
    report = memory.erase_resource(resource.pk, keep=waiting())
    report.counts.update(counts)
    report.counts["media"] += len(media.destroy(files, keep=waiting()))
    report.since = began
    _drop(blocks, report)
    return report


@anew
@transaction.atomic
def erase_person(person: User, *, author: User | None = None, reason: str = "") -> Erased:
    """Destroy what a person said: resources of theirs alone, their turns and notes in all others.

    Prompts of theirs that wait are taken back, their membership ends, and their name and reasons
    go from every revision. A line that they changed stays: it tells what others said too. The
    account stays. Raises Refused while a turn of theirs runs.
    """
    total = Erased()
    said = Turn.objects.filter(author=person)
    changed = Revision.objects.filter(author=person)
    _take_back(said)
    # What was said in a resource stays said when its author leaves.
    spoke = Q(pk__in=said.values("thread__resource")) | Q(pk__in=changed.values("record__resource"))
    for resource in Resource.objects.filter(Q(members=person) | spoke).distinct():
        if list(resource.members.all()) == [person]:
            total.counts.update(erase_resource(resource).counts)
            continue
        for thread_id, first, last in _said(person, resource):
            done = erase_messages(thread_id, first, last, author=author, reason=reason)
            total.counts.update(done.counts)
        for line_id in _noted(person, resource):
            if Line.objects.filter(pk=line_id).exists():  # A copy goes with the first of them.
                total.counts.update(erase_line(line_id, author=author, reason=reason).counts)
        resource.members.remove(person)
    files = _files(said)
    total.counts["prompts"] += said.update(
        author=None, prompt=ERASED, attachments=[], draft_text="", error=""
    )
    total.counts["media"] += len(media.destroy(files, keep=waiting()))
    changed.update(author=None, reason="")
    return total


def _said(person: User, resource: Resource) -> list[tuple[UUID, int, int]]:
    turns = Turn.objects.filter(author=person, thread__resource=resource)
    spans = turns.values_list("thread", "first_position", "last_position")
    return [(thread, first, last or first) for thread, first, last in spans if first]


def _noted(person: User, resource: Resource) -> list[UUID]:
    """Return the lines a person wrote as notes: a revision of theirs shows each."""
    theirs = Revision.objects.filter(
        record=OuterRef("observation__record"),
        number=OuterRef("since"),
        cause=Revision.Cause.NOTE,
        author=person,
    )
    notes = Line.objects.filter(Exists(theirs), observation__record__resource=resource)
    return list(notes.values_list("pk", flat=True))


def _take_back(turns: TurnQuerySet) -> None:
    """Withdraw prompts that wait. Raises Refused when one has become a message meanwhile."""
    for thread_id, number in turns.waiting().values_list("thread", "number"):
        withdraw(thread_id, number)
    if turns.running().exists():
        raise Refused(BUSY)


def _idle(thread_id: UUID, why: str = BUSY) -> None:
    # Whoever begins a turn takes it first, then the thread: so does who erases.
    taken = _open(thread_id).select_for_update()
    if Status.RUNNING in set(taken.values_list("status", flat=True)):
        raise Refused(why)


def _idle_copies(thread_id: UUID, first: int = 1, last: int | None = None) -> None:
    thread = Thread.objects.filter(pk=thread_id).first()
    if thread is None:
        return
    span = Span(thread_id, first, thread.last_position if last is None else last)
    for copy in copies_of(span):
        if copy.thread != thread_id:
            _idle(copy.thread, BUSY_COPY.format(Thread.objects.get(pk=copy.thread)))


def _last_look(thread_id: UUID, idle_since: datetime | None) -> None:
    _nobody_begins(thread_id)
    if idle_since is None:
        return
    resting = Thread.objects.filter(pk=thread_id, last_active_at__lt=idle_since)
    if _open(thread_id).exists() or not resting.exists():
        raise Refused("The conversation went on meanwhile.")


def _nobody_begins(thread_id: UUID) -> None:
    """Take the turns that wait. Raises Refused when somebody else has taken one to begin it."""
    free = _open(thread_id).select_for_update(skip_locked=True)
    if len(free) < _open(thread_id).count():
        raise Refused(BUSY)


def _open(thread_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.filter(thread=thread_id, status__in=(Status.WAITING, Status.RUNNING))


def _files(turns: QuerySet[Turn]) -> set[str]:
    """Return the hashes of what was attached to some turns."""
    attached = turns.exclude(attachments=[]).values_list("attachments", flat=True)
    return {file["hash"] for files in attached for file in files}


def _turns(report: Erased) -> None:
    """Empty the prompts and errors of turns whose messages were erased."""
    for span in report.spans:
        begun = Turn.objects.filter(thread=span.thread)
        asked = begun.filter(first_position__range=(span.first, span.last))
        files = _files(asked)
        report.counts["prompts"] += asked.exclude(prompt=ERASED).update(
            prompt=ERASED, attachments=[]
        )
        within = Q(first_position__lte=span.last) & (
            Q(last_position__isnull=True) | Q(last_position__gte=span.first)
        )
        report.counts["media"] += len(media.destroy(files, keep=waiting()))
        begun.filter(within).exclude(draft_text="", error="").update(draft_text="", error="")


def _requests(report: Erased, blocks: Iterable[str] = ()) -> None:
    """Forget the blocks of requests sent since the text was said: any may have held it."""
    snapshots = RequestSnapshot.objects.filter(turn__thread__in=report.threads)
    if report.since is not None:
        snapshots = snapshots.filter(created_at__gte=report.since - memory.CLOCKS)
    hashes = set(blocks) | _blocks(snapshots)
    for snapshot in snapshots.iterator():
        for block in snapshot.blocks:
            if block["kind"] not in KINDS:
                block["hash"] = ""
        snapshot.save(update_fields=["blocks"])
        report.counts["requests"] += 1
    _drop(hashes, report)


def _blocks(snapshots: QuerySet[RequestSnapshot]) -> set[str]:
    found = snapshots.values_list("blocks", flat=True).iterator()
    return {block["hash"] for blocks in found for block in blocks if block.get("hash")}


def _drop(hashes: set[str], report: Erased) -> None:
    """Delete the texts of blocks that no other request contains, and what nothing refers to.

    A request that was sent again in another form leaves the texts of the first behind.
    """
    chosen = Q(hash__in=hashes)
    if report.since is not None:
        chosen |= Q(kept_at__gte=report.since - memory.CLOCKS)
    stored = Blob.objects.filter(chosen).values_list("hash", flat=True)
    report.counts["texts"] += Blob.objects.let_go(stored, used=_used)


def _used(hashes: set[str]) -> set[str]:
    return _blocks(RequestSnapshot.objects.all()) | memory.asked(hashes)
