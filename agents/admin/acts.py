"""Describe the acts of the admin: what each would do, in numbers, and the service that does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Sum
from django.http import HttpRequest
from django.urls import reverse

from agents.access import author
from agents.models import RequestSnapshot, Turn
from agents.services import erase
from agents.services.fork import fork
from agents.services.release import release as release_turn
from memory.models import (
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Resource,
    Revision,
    Thread,
)
from memory.services import again
from memory.services.asked import ask_for
from memory.services.clear import clear
from memory.services.history import compare
from memory.services.reconcile import drifted, reconcile
from memory.services.restore import restore
from memory.services.sizes import recount_resource

from .asking import Act, Done

Given = Mapping[str, Any]

ASKED = {
    "observe": (
        "Observe now",
        "Shows what is buffered, then has the Observer read everything else that can be covered. "
        "It runs in the background and costs one model call or more.",
    ),
    "activate": ("Activate now", "Shows everything that is buffered. No model is asked."),
    "reflect": (
        "Reflect now",
        "Has the Reflector condense all visible lines but notes and pins. It runs in the "
        "background and costs one model call.",
    ),
}


def change_page(row: Any) -> str:
    """Return the address of a row's page."""
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=(row.pk,))


def asked(name: str, thread: Thread) -> Act:
    """Return the act of working on a thread's memory in the background."""
    title, says = ASKED[name]

    def carry_out(given: Given) -> Done:
        ask_for(name, thread.pk)
        return Done(f"{title}: it is under way; its cycles show how far it is.")

    return Act(
        name=name,
        title=f"{title}: {thread}",
        says=says,
        button=title,
        carry_out=carry_out,
        back=change_page(thread),
        resource=thread.resource,
        thread=thread.pk,
        facts=[("Messages", f"{thread.last_position:,}")],
        why=False,
    )


def fork_of(request: HttpRequest, thread: Thread) -> Act:
    """Return the act of forking a thread at a position."""

    def carry_out(given: Given) -> Done:
        child = fork(
            thread.pk,
            given["number"],
            author=author(request),
            reason=given["reason"],
        )
        said = f"Forked “{thread}” at position {child.fork_position}."
        return Done(said, {"position": child.fork_position}, change_page(child))

    return Act(
        name="fork",
        title=f"Fork {thread}",
        says="Begins a conversation as a copy of this one up to a message, with what is "
        "remembered of it. This one stays as it is.",
        button="Fork",
        carry_out=carry_out,
        back=change_page(thread),
        resource=thread.resource,
        thread=thread.pk,
        number=("After which message", thread.last_position),
    )


def erasing_thread(request: HttpRequest, thread: Thread) -> Act:
    """Return the act of destroying a thread."""

    def carry_out(given: Given) -> Done:
        report = erase.erase_thread(thread.pk, author=author(request), reason=given["reason"])
        go = reverse("admin:memory_thread_changelist")
        return Done("The conversation is erased.", _counted(report.counts), go)

    return Act(
        name="erase",
        title=f"Erase {thread}",
        says="Destroys the conversation, in its forks too, and everything made of it: "
        "observations, every reflection that rests on them, requests and replies. "
        "It cannot be brought back.",
        button="Erase for good",
        carry_out=carry_out,
        back=change_page(thread),
        resource=thread.resource,
        thread=thread.pk,
        facts=_thread_facts(thread),
        type_this=str(thread.pk),
    )


def _thread_facts(thread: Thread) -> list[tuple[str, object]]:
    rows = Observation.objects.filter(thread=thread)
    lines = Line.objects.filter(observation__in=rows)
    resting = Observation.objects.filter(
        kind=Observation.Kind.REFLECTION, source_links__observation__in=rows
    )
    return [
        ("Messages", Message.objects.filter(thread=thread).count()),
        ("Turns", Turn.objects.filter(thread=thread).count()),
        ("Observations", rows.count()),
        ("Lines, with every version", lines.count()),
        ("Reflections that rest on them", resting.distinct().count()),
        ("Forks that lose these messages", thread.forks.count()),
        ("Requests kept", RequestSnapshot.objects.filter(turn__thread=thread).count()),
    ]


def erasing_resource(request: HttpRequest, resource: Resource) -> Act:
    """Return the act of destroying a resource."""

    def carry_out(given: Given) -> Done:
        report = erase.erase_resource(resource)
        go = reverse("admin:memory_resource_changelist")
        return Done(f"The resource {resource.key} is erased.", _counted(report.counts), go)

    records = MemoryRecord.objects.filter(resource=resource)
    return Act(
        name="erase",
        title=f"Erase {resource}",
        says="Destroys the resource with all of its conversations and everything that is "
        "remembered of them. It cannot be brought back; export a bundle first to keep one.",
        button="Erase for good",
        carry_out=carry_out,
        back=change_page(resource),
        resource=resource.key,
        facts=[
            ("Members who lose it", resource.members.count()),
            ("Conversations", Thread.objects.filter(resource=resource).count()),
            ("Messages", Message.objects.filter(thread__resource=resource).count()),
            ("Memories", records.count()),
            ("Revisions", Revision.objects.filter(record__in=records).count()),
            ("Lines", Line.objects.filter(observation__record__in=records).count()),
        ],
        type_this=resource.key,
    )


def erasing_person(request: HttpRequest, person: User) -> Act:
    """Return the act of destroying what a person said."""

    def carry_out(given: Given) -> Done:
        report = erase.erase_person(person, author=author(request), reason=given["reason"])
        return Done(f"What {person} said is erased.", _counted(report.counts))

    turns = Turn.objects.filter(author=person)
    alone = [r for r in person.resources.all() if r.members.count() == 1]
    return Act(
        name="erase person",
        title=f"Erase what {person} said",
        says="Destroys the resources that are theirs alone, and their messages and notes in shared "
        "ones, with everything made of them. Their account stays, and so does a line they changed.",
        button="Erase for good",
        carry_out=carry_out,
        back=change_page(person),
        resource=", ".join(each.key for each in alone)[:100],
        facts=[("Resources of theirs alone", len(alone)), ("Messages they sent", turns.count())],
        type_this=person.get_username(),
    )


def erasing_line(request: HttpRequest, line: Line) -> Act:
    """Return the act of destroying a line."""
    record = line.observation.record

    def carry_out(given: Given) -> Done:
        report = erase.erase_line(line.pk, author=author(request), reason=given["reason"])
        go = change_page(record)
        return Done("The line is erased.", _counted(report.counts), go)

    made_of_it = Observation.objects.filter(source_links__observation=line.observation)
    return Act(
        name="erase line",
        title="Erase a line",
        says="Destroys the line with every version it had, and every reflection made from it; "
        "of a reflection, the lines it rests on as well. Its messages stay.",
        button="Erase for good",
        carry_out=carry_out,
        back=change_page(line),
        resource=record.resource,
        thread=line.observation.thread_id,
        facts=[("Reflections that may go with it", made_of_it.distinct().count())],
        type_this=line.pk.hex[-8:],
    )


def restoring(request: HttpRequest, revision: Revision) -> Act:
    """Return the act of going back to a revision."""
    record = revision.record

    def carry_out(given: Given) -> Done:
        made = restore(record.pk, revision.number, author=author(request), reason=given["reason"])
        said = f"Revision {made} shows what revision {revision.number} did."
        return Done(said, {"revision": made}, change_page(record))

    changed = compare(record.pk, revision.number, record.revision)
    return Act(
        name="restore",
        title=f"Restore revision {revision.number}",
        says="Shows again the lines visible at it, with what was observed since. It undoes edits, "
        "notes, forgets and reflections made after it, as a new revision: nothing is lost.",
        button="Restore",
        carry_out=carry_out,
        back=change_page(revision),
        resource=record.resource,
        thread=record.thread_id,
        facts=[
            ("Lines that differ since", len(changed.changed)),
            ("Lines added since", len(changed.added)),
            ("Lines gone since", len(changed.removed)),
            ("Revision now", record.revision),
        ],
    )


def clearing(request: HttpRequest, record: MemoryRecord) -> Act:
    """Return the act of taking all lines of a record out of sight."""

    def carry_out(given: Given) -> Done:
        done = clear(record.pk, author=author(request), reason=given["reason"])
        numbers = {"revision": done.revision, "lines": done.lines, "chunks": done.chunks}
        return Done(f"Revision {done.revision}: nothing is remembered.", numbers)

    visible = Line.objects.as_of(record.pk, record.revision).count()
    chunks = Observation.objects.buffered(record.pk).count()
    return Act(
        name="clear",
        title="Clear a memory",
        says="Takes all lines out of sight and discards what is buffered. They stay in history, "
        f"and restoring revision {record.revision} brings the lines back.",
        button="Clear",
        carry_out=carry_out,
        back=change_page(record),
        resource=record.resource,
        thread=record.thread_id,
        facts=[("Lines that go out of sight", visible), ("Chunks discarded", chunks)],
        type_this=record.pk.hex[-8:],
    )


def counting(resource: Resource) -> Act:
    """Return the act of counting the tokens of a resource's memory anew."""
    lines = Line.objects.filter(observation__record__resource=resource)

    def tokens() -> int:
        return lines.aggregate(sum=Sum("tokens"))["sum"] or 0

    def carry_out(given: Given) -> Done:
        before = tokens()
        recount_resource(resource.pk)
        numbers = {"lines": lines.count(), "tokens_before": before, "tokens_after": tokens()}
        return Done("The tokens of lines, rows and revisions are counted anew.", numbers)

    return Act(
        name="count",
        title=f"Count anew: {resource.name}",
        says="Counts the tokens of all lines anew, and with them what rows and revisions say of "
        "their sizes. No text changes and no model is asked.",
        button="Count anew",
        carry_out=carry_out,
        back=change_page(resource),
        resource=resource,
        facts=[("Lines", lines.count()), ("Tokens they count now", tokens())],
        why=False,
    )


def reconciling(record: MemoryRecord) -> Act:
    """Return the act of putting the cursors of a record where its observations say they are."""

    def carry_out(given: Given) -> Done:
        moved = reconcile(record.pk)
        if not moved:
            return Done("Every cursor stood where its observations say.", {"cursors": 0})
        places = [{"thread": str(m.thread), "from": m.before, "to": m.after} for m in moved]
        return Done("The cursors are put right.", {"cursors": len(moved), "moved": places})

    return Act(
        name="reconcile",
        title=f"Reconcile cursors: {record.thread or record.resource}",
        says="Puts each thread's cursor where the observations say it is. Needed only where rows "
        "were changed by hand or damaged: a cursor that stands elsewhere keeps its thread from "
        "being observed. No text changes and no model is asked.",
        button="Reconcile",
        carry_out=carry_out,
        back=change_page(record),
        resource=record.resource,
        thread=record.thread_id,
        facts=[("Cursors that stand elsewhere", drifted(record.pk))],
        why=False,
    )


def trying_again(cycle: Cycle) -> Act:
    """Return the act of trying a failed cycle again."""

    def carry_out(given: Given) -> Done:
        again.try_again(cycle.pk)
        return Done("The cycle is due now.")

    return Act(
        name="retry",
        title="Try a failed cycle again",
        says=f"It failed: {cycle.error or 'no reason is kept.'} It is tried again at once instead "
        "of after its rest.",
        button="Try again",
        carry_out=carry_out,
        back=change_page(cycle),
        resource=cycle.record.resource,
        thread=cycle.thread_id,
        facts=[("Attempts so far", cycle.attempt)],
        why=False,
    )


def releasing_cycle(cycle: Cycle) -> Act:
    """Return the act of taking a cycle from its owner."""

    def carry_out(given: Given) -> Done:
        again.release(cycle.pk)
        return Done("The lease is released; the work is begun anew.")

    return _release("cycle", cycle, cycle.owner, cycle.record.resource, cycle.thread_id, carry_out)


def cancelling_cycle(cycle: Cycle, author: Any) -> Act:
    """Return the act of ending a running cycle that nobody wants now."""

    def carry_out(given: Given) -> Done:
        again.cancel(cycle.pk, author=author)
        return Done("It is cancelled; it is tried again in a while.")

    return Act(
        name="cancel cycle",
        title="Cancel a running cycle",
        says="Whoever runs it writes nothing more, and an answer that waits for it goes on "
        "without. Memory stays as it is; the work is tried again in a while.",
        button="Cancel it",
        carry_out=carry_out,
        back=change_page(cycle),
        resource=cycle.record.resource,
        thread=cycle.thread_id,
        facts=[("Running since", f"{cycle.started_at:%d %b %Y %H:%M:%S}")],
        why=False,
    )


def releasing_turn(turn: Turn) -> Act:
    """Return the act of taking a turn from its runner."""

    def carry_out(given: Given) -> Done:
        release_turn(turn.pk)
        return Done("The turn is closed as interrupted, with what it had said.")

    resource = turn.thread.resource
    return _release("turn", turn, turn.lease_token, resource, turn.thread_id, carry_out)


def _release(
    noun: str, row: Any, owner: UUID | None, resource: Resource, thread: UUID | None, act: Any
) -> Act:
    until = row.lease_expires_at
    return Act(
        name=f"release {noun}",
        title=f"Release the lease of a {noun}",
        says="Whoever runs it writes nothing more. Do this when they are gone; a lease that "
        "lapses is taken over by itself.",
        button="Release",
        carry_out=act,
        back=change_page(row),
        resource=resource,
        thread=thread,
        facts=[
            ("Owner", owner or "nobody"),
            ("Running since", f"{row.started_at:%d %b %Y %H:%M:%S}" if row.started_at else "–"),
            ("Lease until", f"{until:%d %b %Y %H:%M:%S}" if until else "–"),
        ],
        why=False,
    )


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
