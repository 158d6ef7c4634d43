"""Make buffered observations and waiting reflections visible. No model is called."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from memory.dispatch import dispatch
from memory.engine.lifecycle import Activate
from memory.events import MemoryActivated, MemoryReflected, ThreadRenamed
from memory.models import Cursor, Cycle, Line, Observation, Revision, Thread
from memory.models.record import CursorMoved
from memory.publish import publish

from .look import View, visible_lines

SHORTEST_TITLE = 3


def activate(view: View, due: Activate, *, trigger: str = "threshold") -> int:
    """Show the oldest buffered observations of a view as one revision; return its number.

    Raises RecordMoved or CursorMoved, with nothing written, when the world moved on.
    """
    with transaction.atomic():
        number = view.record.advance()
        show(view, view.buffered[: due.count], number)
        revision(
            view,
            number,
            Revision.Cause.ACTIVATE,
            trigger=trigger,
            message_tokens=(due.tokens_before, due.tokens_after),
        )
        publish(MemoryActivated(thread=view.thread.pk, record=view.record.pk, revision=number))
        dispatch(view.thread.pk)
    return number


def show(view: View, observations: Sequence[Observation], number: int) -> None:
    """Make observations visible at a revision and move the cursor over their ranges."""
    last = observations[-1].last_position
    assert last is not None
    cursor = Cursor.objects.get(record=view.record, thread=view.thread)
    if cursor.observed_through > view.observed_through:
        raise CursorMoved("Another process activated these observations first.")
    cursor.move(
        buffered_through=max(cursor.buffered_through, last),
        observed_through=last,
    )
    ids = [observation.pk for observation in observations]
    shown = Observation.objects.filter(pk__in=ids, since__isnull=True)
    if shown.update(since=number, place=number) != len(ids):
        raise CursorMoved("Another process activated these observations first.")
    Line.objects.filter(observation__in=ids).update(since=number)
    _rename(view.thread, observations)


def revision(
    view: View,
    number: int,
    cause: Revision.Cause,
    *,
    trigger: str = "",
    cycle: Cycle | None = None,
    message_tokens: tuple[int, int] = (0, 0),
) -> Revision:
    """Record a change that was made under ``number``, with the tokens before and after."""
    before, after = message_tokens
    return Revision.objects.create(
        record=view.record,
        number=number,
        cause=cause,
        cycle=cycle,
        thread=view.thread,
        trigger=trigger,
        message_tokens_before=before,
        message_tokens_after=after,
        tokens_before=view.tokens,
        tokens_after=sum(line.tokens for line in visible_lines(view.record.pk, number)),
    )


def activate_reflection(view: View) -> int | None:
    """Let the waiting reflection take the place of its sources; return the revision.

    One whose epoch is past is given up instead, and None returned.
    """
    with transaction.atomic():
        waiting = (
            Observation.objects.waiting_reflections(view.record.pk).select_related("cycle").first()
        )
        if waiting is None:
            return None
        if waiting.cycle is not None and waiting.cycle.epoch != view.record.epoch:
            Observation.objects.filter(pk=waiting.pk).update(discarded_at=timezone.now())
            return None
        number = view.record.advance(generations=1)
        replace_sources(view, waiting, number)
        revision(view, number, Revision.Cause.REFLECT, cycle=waiting.cycle, trigger="threshold")
        publish(MemoryReflected(thread=view.thread.pk, record=view.record.pk, revision=number))
        dispatch(view.thread.pk)
    return number


def replace_sources(view: View, reflection: Observation, number: int) -> None:
    """Show a reflection at a revision and close the lines of its sources, pinned ones excepted."""
    sources = Observation.objects.filter(reflection_links__reflection=reflection)
    place = sources.aggregate(last=Max("place"))["last"]
    shown = Observation.objects.filter(pk=reflection.pk, since__isnull=True).update(
        since=number, place=place, generation=view.record.generation
    )
    if not shown:
        raise CursorMoved("Another process activated this reflection first.")
    Line.objects.filter(observation__in=sources, until__isnull=True, pinned=False).update(
        until=number
    )
    Line.objects.filter(observation=reflection).update(since=number)


def _rename(thread: Thread, observations: Sequence[Observation]) -> None:
    titles = [o.thread_title.strip() for o in observations if o.thread_title.strip()]
    if not titles or len(titles[-1]) < SHORTEST_TITLE:
        return
    renamed = Thread.objects.filter(pk=thread.pk, title_pinned=False).exclude(title=titles[-1])
    if renamed.update(title=titles[-1]):
        publish(ThreadRenamed(thread=thread.pk, title=titles[-1]))
