"""Do what people do to memory: edit, note, pin, forget, restore, fork, clear, erase, configure."""

from datetime import timedelta

from django.db.models import F

from agents.models import Turn
from agents.services import erase as erasing
from agents.services import sweep as agents_sweep
from agents.services.fork import fork
from agents.services.scope import change_scope
from memory.models import Cycle, Line, MemoryRecord, Message, Resource, Revision
from memory.services.clear import clear
from memory.services.configure import configure
from memory.services.edit import edit
from memory.services.forget import forget, show_again, unforget
from memory.services.fork import cuts
from memory.services.history import INVERSE, undo
from memory.services.note import note
from memory.services.pin import pin, unpin
from memory.services.restore import restore

from .atoms import only, read, write
from .processes import harness
from .watch import EVERY

WEIGHTS = {
    **{"edit": 3, "note": 1, "pin": 1.5, "unpin": 1, "forget": 1.5, "unforget": 1},
    **{"show_again": 0.6},
    **{"restore": 0.8, "undo": 1.2, "fork": 0.6, "clear": 0.4, "configure": 0.8},
    **{"erase_line": 0.4, "erase_messages": 0.4, "change_scope": 0.25, "stale": 0.5},
    **{"erase_thread": 0.2, "erase_resource": 0.08},
}
FEWEST_THREADS = 2
PAST = {"lease_expires_at": F("lease_expires_at") - timedelta(hours=1)}
MOST_THREADS = 5
CHANGES = (
    *({"message_tokens": 90}, {"message_tokens": 200}, {"observation_tokens": 150}),
    *({"buffer_tokens": False, "block_after": None}, {"buffer_tokens": 0.25}),
    *({"buffer_activation": 0.6}, {"instruction": "Mind the bees."}, {"message_tokens": None}),
)


class People:
    """Hold what people do; mixed into a play."""

    def _record(self):
        with harness():
            records = self.world.records()
        return self.random.choice(records) if records else None

    def _line(self, **filters):
        """Return some line of an open record, or None."""
        record = self._record()
        if record is None:
            return None
        with harness():
            lines = Line.objects.filter(observation__record=record, **filters)
            found = sorted(lines.select_related("observation"), key=_told)
        return self.random.choice(found) if found else None

    def _visible(self, **filters):
        return self._line(since__isnull=False, until__isnull=True, **filters)

    def _done(self, what, record_id):
        """Note that something was done, and whether a cycle was at work meanwhile."""
        self.world.happened[what] += 1
        with harness():
            if Cycle.objects.running().filter(record=record_id).exists():
                self.world.happened["edits_during_cycle"] += 1

    def _edit(self, process):
        line = self._visible()
        if line is None:
            return None
        atom = self.world.mint("e")
        kept = only("m", read(line.text))
        edit(line.pk, f"{write(kept)} {atom} as a person put it")
        self._done("edits", line.observation.record_id)
        return f"{_told(line)} to say {atom}"

    def _stale(self, process):
        """Edit a line as somebody does who saw it long ago."""
        line = self._line(since__isnull=False)
        if line is None:
            return None
        atom = self.world.mint("e")
        kept = only("m", read(line.text))
        edit(line.pk, f"{write(kept)} {atom} as seen before", expected=line.since)
        self._done("edits", line.observation.record_id)
        return f"edit of {_told(line)}"

    def _note(self, process):
        record = self._record()
        if record is None:
            return None
        atom = self.world.mint("n")
        note(record.pk, f"{atom} is worth a note", thread_id=record.thread_id)
        self._done("notes", record.pk)
        return f"{atom}"

    def _pin(self, process):
        return self._to_line("pins", pin, self._visible(pinned=False))

    def _unpin(self, process):
        return self._to_line("unpins", unpin, self._visible(pinned=True))

    def _forget(self, process):
        return self._to_line("forgets", forget, self._visible())

    def _unforget(self, process):
        return self._to_line("unforgets", unforget, self._line(until__isnull=False))

    def _show_again(self, process):
        """Show a line again though what took its place may tell of it, too."""
        line = self._line(until__isnull=False)
        if line is None:
            return None
        shown = show_again(line.pk)
        self.world.shown_again.update(read(shown.text))
        self._done("shown_again", line.observation.record_id)
        return _told(line)

    def _to_line(self, what, service, line):
        if line is None:
            return None
        service(line.pk)
        self._done(what, line.observation.record_id)
        return _told(line)

    def _restore(self, process):
        record = self._record()
        if record is None or record.revision < 3:
            return None
        number = self.random.randrange(record.revision)
        restore(record.pk, number)
        self._done("restores", record.pk)
        return f"revision {number}"

    def _undo(self, process):
        record = self._record()
        if record is None:
            return None
        with harness():
            made = Revision.objects.filter(record=record, cause__in=list(INVERSE))
            numbers = list(made.order_by("number").values_list("number", flat=True))
        if not numbers:
            return None
        number = self.random.choice(numbers[-3:])
        undo(record.pk, number)
        self._done("undos", record.pk)
        return f"revision {number}"

    def _clear(self, process):
        record = self._record()
        if record is None:
            return None
        thread = None
        if record.thread_id is None and self.random.random() < 0.5:
            thread = self._some_thread().pk
        clear(record.pk, thread_id=thread)
        self._done("clears", record.pk)
        return "one of several" if thread else "all"

    def _fork(self, process):
        thread = self._some_thread()
        if len(self.world.threads()) >= MOST_THREADS:
            return None
        with harness():
            places = cuts(thread.pk)
        position = self.random.choice([0, *places[-8:]])
        with self.audits.around_fork(thread.pk, position):
            child = fork(thread.pk, position)
            self.world.grown()
        self.world.happened["forks"] += 1
        return f"{self.world.name(thread.pk)} at {position} as {self.world.name(child.pk)}"

    def _configure(self, process):
        changes = self.random.choice(CHANGES)
        thread = self._some_thread()
        configure(thread.pk, changes)
        self.world.happened["configs"] += 1
        return f"{changes}"

    def _change_scope(self, process):
        with harness():
            resource = Resource.objects.get(pk=self.world.resource_id)
            shared = MemoryRecord.objects.filter(
                resource=resource, thread__isnull=True, closed_at__isnull=True
            )
            scope = "thread" if shared.exists() else "resource"
            if self.random.random() < 0.5:
                self._end_turns(thread__resource=resource)
        with self.audits.around_scope():
            change_scope(resource, scope)
        self.world.happened["scopes"] += 1
        return f"to {scope}"

    def _erase_line(self, process):
        line = self._line(since__isnull=False)
        if line is None:
            return None
        with self.audits.around_erase(line=line):
            erasing.erase_line(line.pk)
        self._done("erases", line.observation.record_id)
        return _told(line)

    def _erase_messages(self, process):
        thread = self._some_thread()
        with harness():
            rows = Message.objects.filter(thread=thread).order_by("position")
            positions = list(rows.values_list("position", flat=True))
        if not positions:
            return None
        first = self.random.choice(positions)
        last = min(first + self.random.randrange(4), positions[-1])
        with self.audits.around_erase(thread.pk, first, last):
            erasing.erase_messages(thread.pk, first, last)
        self.world.happened["erases"] += 1
        return f"{self.world.name(thread.pk)} {first} to {last}"

    def _erase_thread(self, process):
        thread = self._some_thread()
        name = self.world.name(thread.pk)
        with harness():
            self._end_turns(thread=thread)
            if len(self.world.threads()) <= FEWEST_THREADS:
                self.world.begin_threads(1)
        with self.audits.around_erase(thread.pk, 0, EVERY, whole=True):
            erasing.erase_thread(thread.pk)
        self.world.happened["erased_threads"] += 1
        return name

    def _erase_resource(self, process):
        with harness():
            self._end_turns(thread__resource=self.world.resource_id)
            resource = Resource.objects.get(pk=self.world.resource_id)
        with self.audits.around_end_of_all():
            erasing.erase_resource(resource)
        with harness():
            self.world.make(self.random)
        self.world.happened["erased_resources"] += 1
        return "all there is"

    def end_of_all(self):
        """Erase the resource when its seed is over, with what several processes left of it."""
        with self.audits.around_end_of_all():
            erasing.erase_resource(Resource.objects.get(pk=self.world.resource_id))
        self.world.happened["erased_resources"] += 1

    def _end_turns(self, **chosen):
        """Close running turns as those of a process that died: nobody erases beneath an answer."""
        Turn.objects.running().filter(**chosen).update(**PAST)
        agents_sweep.sweep()


def _told(line):
    """Return what a line is about, the same in every run of a seed."""
    return f"{write(read(line.text))} [{line.since}-{line.until}, {line.ordinal}]"


__all__ = ["WEIGHTS", "People"]
