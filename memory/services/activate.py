"""Make buffered observations and waiting reflections visible. No model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.db.models import BigIntegerField, Case, Max, Q, Value, When
from django.utils import timezone

from memory.dispatch import dispatch
from memory.engine.lifecycle import Activate
from memory.engine.parsing import SHORTEST_TITLE
from memory.engine.values import Hints
from memory.events import MemoryActivated, MemoryReflected, ThreadRenamed
from memory.models import Cursor, Cycle, Line, Observation, Revision, Thread
from memory.models.record import CursorMoved
from memory.publish import publish

from . import kept
from .look import View, look, visible_lines
from .sizes import tokens_at


def activate(view: View, due: Activate) -> View:
    """Show buffered observations of a view as one revision; return the view after it.

    Raises RecordMoved or CursorMoved, with nothing written, when the world moved on.
    """
    chosen = {chunk.id for chunk in due.chunks}
    shown = [o for tail in view.tails for o in tail.buffered if o.pk in chosen]
    with transaction.atomic():
        rename(shown)
        number = view.record.advance()
        show(view, shown, number)
        after = _after(view, shown, number)
        revision(
            view,
            number,
            Revision.Cause.ACTIVATE,
            trigger=due.trigger,
            message_tokens=(due.tokens_before, due.tokens_after),
            after=after.memory,
        )
        publish(MemoryActivated(thread=view.thread.pk, record=view.record.pk, revision=number))
    if number == view.revision + 1:
        return after
    # Others changed memory since the view was taken: of this thread, too, where only chunks of
    # other threads were shown. What was observed then is not to be told raw beside its lines.
    return look(view.thread.pk, keep=False) or after


def show(view: View, observations: Sequence[Observation], number: int) -> None:
    """Make observations visible at a revision and move the cursors over their ranges.

    ``observations`` are the oldest that wait, in order within each thread; the view was taken
    before the revision. Raises CursorMoved.
    """
    _move(view, observations)
    ids = [observation.pk for observation in observations]
    waiting = Observation.objects.filter(pk__in=ids, since__isnull=True)
    if waiting.update(since=number, place=number) != len(ids):
        raise CursorMoved("Another process activated these observations first.")
    Line.objects.filter(observation__in=ids).update(since=number)


def _move(view: View, observations: Sequence[Observation]) -> None:
    """Move the cursors of all threads over their ranges, from where the view saw them."""
    ends: dict[UUID | None, int] = {}
    for observation in observations:
        last = observation.last_position or 0
        ends[observation.thread_id] = max(last, ends.get(observation.thread_id, 0))
    seen = {tail.thread: tail.observed_through for tail in view.tails}
    here = [
        Q(thread=thread, observed_through=seen[thread], buffered_through__gte=last)
        for thread, last in ends.items()
        if thread is not None
    ]
    moves = [When(thread=thread, then=Value(last)) for thread, last in ends.items()]
    moved = Cursor.objects.filter(Q(*here, _connector=Q.OR), record=view.record).update(
        observed_through=Case(*moves, output_field=BigIntegerField())
    )
    if moved != len(ends):
        raise CursorMoved("Another process activated these observations first.")


def _by_thread(observations: Sequence[Observation]) -> Sequence[Observation]:
    # Threads are locked in one order everywhere, or two processes could wait for each other.
    return sorted(observations, key=lambda o: (o.thread_id, o.first_position))


def _after(view: View, shown: Sequence[Observation], number: int) -> View:
    """Return the view as it is at the revision that shows these observations."""
    memory = kept.Shown(number, view.record.epoch, tuple(visible_lines(view.record.pk, number)))
    transaction.on_commit(lambda: kept.show(view.record.pk, memory), robust=True)
    return after(view, shown, memory)


def after(view: View, shown: Sequence[Observation], memory: kept.Shown) -> View:
    """Return a view once observations of it are shown, which makes memory this."""
    ids = {observation.pk for observation in shown}
    own = [o for o in view.buffered if o.pk in ids]
    through = max((o.last_position or 0 for o in own), default=view.observed_through)
    return replace(
        view,
        memory=memory,
        observed_through=through,
        hints=_hints(view.hints, own),
        extracted=own[-1].extracted if own else view.extracted,
        raw=tuple(raw for raw in view.raw if raw.position > through),
        buffered=tuple(o for o in view.buffered if o.pk not in ids),
        others=tuple(other.without(ids) for other in view.others),
    )


def _hints(hints: Hints, shown: Sequence[Observation]) -> Hints:
    """Return the hints after these observations; what they leave open stays as it was."""
    tasks = [o.current_task for o in shown if o.current_task]
    responses = [o.suggested_response for o in shown if o.suggested_response]
    return replace(
        hints,
        current_task=tasks[-1] if tasks else hints.current_task,
        suggested_response=responses[-1] if responses else hints.suggested_response,
    )


def revision(
    view: View,
    number: int,
    cause: Revision.Cause,
    *,
    trigger: str = "",
    cycle: Cycle | None = None,
    message_tokens: tuple[int, int] = (0, 0),
    after: kept.Shown | None = None,
) -> Revision:
    """Record a change that was made under ``number``, with the tokens before and after."""
    if after is None:
        lines = tuple(visible_lines(view.record.pk, number))
        after = kept.Shown(number, view.record.epoch, lines)
    before_messages, after_messages = message_tokens
    return Revision.objects.create(
        record=view.record,
        number=number,
        cause=cause,
        cycle=cycle,
        thread=view.thread,
        trigger=trigger,
        message_tokens_before=before_messages,
        message_tokens_after=after_messages,
        tokens_before=_tokens_before(view, number),
        tokens_after=after.tokens(view.zone),
    )


def _tokens_before(view: View, number: int) -> int:
    """Return the tokens visible just before a revision, which need not be those of the view."""
    if view.memory.revision == number - 1:
        return view.tokens
    return tokens_at(view.record.pk, number - 1)


def activate_reflection(view: View, *, trigger: str = "threshold") -> int | None:
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
            view.record.hold()  # The record before its rows: so does whoever changes it.
            Observation.objects.filter(pk=waiting.pk).update(discarded_at=timezone.now())
            return None
        number = view.record.advance(generations=1)
        replace_sources(view, waiting, number)
        revision(view, number, Revision.Cause.REFLECT, cycle=waiting.cycle, trigger=trigger)
        publish(MemoryReflected(thread=view.thread.pk, record=view.record.pk, revision=number))
        dispatch(view.thread.pk)
    return number


def replace_sources(view: View, reflection: Observation, number: int) -> None:
    """Show a reflection at a revision and close the lines of its sources, pinned ones excepted."""
    sources = Observation.objects.filter(reflection_links__reflection=reflection)
    place = sources.aggregate(last=Max("place"))["last"]
    waiting = Observation.objects.filter(pk=reflection.pk, since__isnull=True)
    shown = waiting.filter(discarded_at__isnull=True).update(
        since=number, place=place, generation=view.record.generation
    )
    if not shown:
        raise CursorMoved("This reflection was activated or given up meanwhile.")
    visible = Line.objects.filter(
        observation__in=sources, since__isnull=False, until__isnull=True, pinned=False
    )
    visible.update(until=number)
    Line.objects.filter(observation=reflection).update(since=number)


def rename(observations: Sequence[Observation]) -> None:
    """Give threads the newest titles their observations suggest; people's titles stay.

    To be done before a record is changed: threads are locked before records.
    """
    titles: dict[UUID, str] = {}
    for observation in _by_thread(observations):
        title = observation.thread_title.strip()
        if len(title) >= SHORTEST_TITLE and observation.thread_id is not None:
            titles[observation.thread_id] = title
    for thread_id, title in titles.items():
        other = Thread.objects.filter(pk=thread_id, title_pinned=False).exclude(title=title)
        # Turns that begin at once hold a thread each, and would wait here for each other's.
        free = other.select_for_update(skip_locked=True, no_key=True).values("pk")
        if Thread.objects.filter(pk__in=free).update(title=title):
            publish(ThreadRenamed(thread=thread_id, title=title))
