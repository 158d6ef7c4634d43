"""Break memory on purpose, one guard at a time, to see whether the fuzz notices.

Each fault is what somebody could write who did not know why the guard is there.
"""

import copy
from dataclasses import replace

from .processes import current
from .world import playing

NEWER = 3
"""Processes born later than this are successors of killed ones."""


def skip_the_compare_and_swap():
    """Show observations without asking whether somebody else has shown them."""
    from memory.models import Cursor, Line, Observation
    from memory.services import activate, observe

    def show(view, observations, number):
        for row in observations:
            cursor = Cursor.objects.filter(record=view.record, thread=row.thread_id)
            cursor.update(observed_through=row.last_position)
        ids = [row.pk for row in observations]
        Observation.objects.filter(pk__in=ids).update(since=number, place=number)
        Line.objects.filter(observation__in=ids).update(since=number)

    activate.show = observe.show = show


def read_the_cursor_after_the_rows():
    """Read the revision first and the cursor with another statement."""
    from memory.services import look

    read = look.read_state

    def late(thread_id, *, lanes=False):
        early, process = read(thread_id, lanes=lanes), current.get()
        if process is not None:
            playing[0].before_taking(process, "record")
        now = read(thread_id)
        return replace(
            early,
            observed_through=now.observed_through,
            written_through=now.written_through,
            buffered_through=now.buffered_through,
        )

    look.read_state = late


def move_the_cursor_on_empty_output():
    """Take a reply that cannot be read for one that says nothing."""
    from memory import observer
    from memory.engine.parsing import BadOutput
    from memory.engine.values import ObserverOutput

    ask, ask_many = observer.observe, observer.observe_many

    async def observe(request, **asked):
        try:
            return await ask(request, **asked)
        except BadOutput as error:
            return observer.Observed(ObserverOutput(()), observer.reply_of(error))

    async def observe_many(request, **asked):
        try:
            return await ask_many(request, **asked)
        except BadOutput as error:
            outputs = tuple(ObserverOutput(()) for _ in request.sections)
            return observer.ObservedMany(outputs, observer.reply_of(error))

    observer.observe, observer.observe_many = observe, observe_many


def drop_the_owner_check():
    """Let whoever once held a cycle end it."""
    from memory.models import Cycle, cycle
    from memory.models.swift import swap

    def _swap(self, **changes):
        if swap(Cycle, {"pk": self.pk}, changes) is None:
            raise cycle.CycleLost

    Cycle._swap = _swap


def drop_the_epoch_check():
    """Let work commit that was begun before somebody's edit."""
    from memory.models import MemoryRecord

    MemoryRecord._mine = lambda self: {"pk": self.pk, "closed_at": None}


def activate_twice():
    """Show what was just shown once more, from the view taken before."""
    from memory.services import prepare

    skip_the_compare_and_swap()
    activate = prepare.activate

    def twice(view, due):
        activate(view, due)
        return activate(view, due)

    prepare.activate = twice


def append_twice_after_a_restart():
    """Store the first message again that a process stores after another died."""
    from memory.services import append

    store, begun = append._store, set()

    def again(thread_id, rows):
        stored, process = store(thread_id, rows), current.get()
        if process is not None and int(process.name[1:]) > NEWER and process not in begun:
            begun.add(process)
            rows = [copy.copy(row) for row in rows]
            for row in rows:
                row.pk = None
            store(thread_id, rows)
        return stored

    append._store = again


def keep_what_models_were_asked():
    """Erase messages and lines, and leave the requests and replies that hold them."""
    from memory.services import erase

    erase._forget_calls = lambda record, report: None


def leave_out_without_a_word():
    """Drop what overflows the model's window from a request, and from the record of it."""
    from memory.services import prepare, request

    made = request.request_blocks

    def without_a_word(*asked, **more):
        return [block for block in made(*asked, **more) if block.kind != request.LEFT_OUT]

    prepare.request_blocks = without_a_word


FAULTS = {
    fault.__name__: fault
    for fault in (
        skip_the_compare_and_swap,
        read_the_cursor_after_the_rows,
        move_the_cursor_on_empty_output,
        drop_the_owner_check,
        drop_the_epoch_check,
        activate_twice,
        append_twice_after_a_restart,
        keep_what_models_were_asked,
        leave_out_without_a_word,
    )
}
