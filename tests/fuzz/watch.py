"""Watch a world while it is played: what may never go back, and what copying and erasing leave."""

from collections import Counter
from contextlib import contextmanager

from agents.models import Turn
from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    Revision,
    Thread,
)

from . import sql
from .atoms import only, read, read_all, write
from .audit import PEOPLE, Tables, audit, positions, records_of, said_by
from .processes import harness
from .requests import record_of
from .world import TABLES

CURSORS = """
SELECT record_id, thread_id, buffered_through, observed_through FROM memory_cursor
"""
COUNTED = {"activate": "activations", "observe": "observed_at_once", "reflect": "reflections"}
EVERY = 10**6
"""A position after all others."""
MAY_GO_BACK = ("clear", "erase_line", "erase_messages", "change_scope")
TEXTS = (
    *((Message, "text"), (Line, "text"), (Blob, "text"), (Turn, "prompt"), (Turn, "draft_text")),
    *((Turn, "error"), (Revision, "reason"), (Cycle, "error"), (Thread, "title")),
    *((Observation, "current_task"), (Observation, "suggested_response")),
    (Observation, "thread_title"),
)


class Audits:
    """Compare a world with what it was before."""

    def __init__(self, world):
        self.world = world
        self.cursors = {}
        self.lines = {}
        self.rows = {}
        self.messages = {}
        self.revisions = {}
        self.cycles = {}

    def after(self, name):
        """Look at the cursors after each thing done."""
        found = sql.rows(CURSORS)
        now = {(record, thread): (buffered, seen) for record, thread, buffered, seen in found}
        for key, (buffered, seen) in self.cursors.items():
            new_buffered, new_seen = now.get(key, (buffered, seen))
            alone = self.world.alone
            discarded = new_buffered == new_seen and (name in MAY_GO_BACK or not alone)
            discarded = discarded or not alone
            if new_seen < seen or (new_buffered < buffered and not discarded):
                sentence = f"A cursor went from {buffered, seen} to {new_buffered, new_seen}."
                self.world.broken("order", f"{sentence} ({name})")
        self.cursors = now

    def all(self):
        """Check everything, as of now and as it was in the past."""
        audit(self.world)
        self._kept()

    def _kept(self):
        """Compare rows with what they were: none may be gone, none of them say otherwise."""
        now = self._snapshot()
        for what, (old, new) in now.items():
            for pk, before in old.items():
                if pk not in new:
                    self.world.broken("destroyed", f"A {what} is gone: {before}.")
                elif any(b not in (None, a) for b, a in zip(before, new[pk], strict=True)):
                    self.world.broken("destroyed", f"A {what} was {before}, and is {new[pk]}.")
        self._remember(now)

    def _remember(self, now=None):
        now = now or self._snapshot()
        self.lines, self.rows, self.messages, self.revisions, self.cycles = (
            new for _, new in now.values()
        )

    def _snapshot(self):
        return {
            "line": (self.lines, _by_id(Line, "text", "since", "until", "pinned")),
            "row": (self.rows, _by_id(Observation, "first_position", "last_position", "since")),
            "message": (self.messages, _by_id(Message, "thread", "position", "text")),
            "revision": (self.revisions, _by_id(Revision, "number", "cause")),
            "cycle": (self.cycles, _by_id(Cycle, "kind", "finished_at")),
        }

    # --- Copies -------------------------------------------------------------------------

    @contextmanager
    def around_copy(self, thread_id=None):
        """Compare what new records tell with what the old ones told, message by message."""
        if not self.world.alone:
            yield
            self.world.grown()
            return
        with harness():
            self.all()
            self.world.forgotten.clear()
            before = {record["id"] for record in records_of(self.world)}
            told = self._told() if thread_id is None else self._visible(record_of(thread_id))
            hidden = set() if thread_id is not None else self._hidden()
            silent = self._silent()
        yield
        with harness():
            self.world.grown()
            said = said_by(self.world)
            if thread_id is None:
                # What several conversations say may have been forgotten of one alone.
                several = Counter(atom for rows in said.values() for atom in _sum(rows))
                told = Counter({a: n for a, n in told.items() if several[a] < 2 or a not in hidden})
            for record in records_of(self.world):
                if record["closed_at"] is None:
                    new = record["id"] not in before
                    self._compare(Tables(record), told, said, silent, new=new)

    around_scope = around_copy

    def around_fork(self, thread_id, position):
        """Compare what a fork remembers with what its parent does."""
        return self.around_copy(thread_id)

    def _told(self):
        """Return what the open records tell."""
        lines = Line.objects.filter(
            observation__record__closed_at__isnull=True, since__isnull=False, until__isnull=True
        )
        return only("m", read_all(lines.values_list("text", flat=True)))

    def _hidden(self):
        """Return what people ever took out of sight in an open record, erased or said otherwise."""
        open_records = (r for r in records_of(self.world) if r["closed_at"] is None)
        return self.world.erased_lines | {
            atom
            for tables in map(Tables, open_records)
            for number, lines in tables.ended.items()
            if number is not None and tables.causes[number]["cause"] in PEOPLE
            for line in lines
            for atom in line["atoms"]
        }

    def _silent(self):
        """Return what was not found worth telling, with the conversation it was said in.

        A fork's own copy of the same message may have been.
        """
        said = said_by(self.world)
        return {
            (row["thread_id"], atom)
            for tables in map(Tables, (r for r in records_of(self.world) if r["closed_at"] is None))
            for row in tables.observed()
            if row["cycle_id"] is not None
            for position in positions(row, said)
            for atom in said[row["thread_id"]][position]
            if not any(line["atoms"][atom] for line in tables.lines_of(row["id"]))
        }

    def _compare(self, tables, told, said, silent, *, new):
        visible = read_all(
            x["text"] for x in tables.lines if x["since"] is not None and x["until"] is None
        )
        for row in tables.observed():
            if not new and row["cycle_id"] is not None:
                continue
            for position in positions(row, said):
                atoms = said[row["thread_id"]][position]
                lost = {atom for atom in atoms if not visible[atom]}
                self.world.gone[tables.record["id"]] |= lost
                self._copied(tables, row["thread_id"], lost, told, silent)

    def _copied(self, tables, thread_id, lost, told, silent):
        for atom in lost - self.world.forgotten:
            if told[atom] and (thread_id, atom) not in silent:
                name = self.world.name_of_record(tables.record["id"])
                sentence = f"{atom} of {self.world.name(thread_id)} was told before"
                self.world.broken("coverage", f"{sentence}, and is not in the copy, {name}.")

    # --- Erasing ------------------------------------------------------------------------

    @contextmanager
    def around_erase(self, thread_id=None, first=0, last=0, line=None, *, whole=False):
        """Check that what was to be destroyed is nowhere, and that nothing else is gone.

        With ``whole`` it is a conversation with every row of it.
        """
        with harness():
            hit = self._hit(line) if thread_id is None else self._atoms(thread_id, first, last)
            hit += self._beside(thread_id) if whole else Counter()
        if not self.world.alone:
            yield
            self.world.erased |= set(hit) if thread_id else set()
            return
        with harness():
            self.all()
            # What another process forgets meanwhile is not lost by erasing.
            self.world.forgotten.clear()
            spared, hidden = self._by_record(), self._hidden()
            doomed = self._doomed(hit, thread_id, first, last, line)
            doomed += self._of_record(thread_id) if whole else Counter()
            held = {r["id"]: self._all_told(r["id"]) for r in records_of(self.world)}
        yield
        with harness():
            self.world.grown()
            lost = self._lost(spared, hidden) - set(doomed) - self.world.forgotten
            if lost:
                self.world.broken("destroyed", f"Erasing {write(hit)} lost {write(lost)} too.")
            for record, atoms in held.items():
                # What was hidden went by somebody's word: that was checked just before.
                visible = self._visible(record)
                self.world.gone[record] |= {atom for atom in atoms if not visible[atom]}
            if thread_id is not None:
                self.world.erased |= set(hit)
            elif line is not None:
                self._line_gone(line)
                self.world.erased_lines |= set(doomed)
            if whole:
                self._no_row_of(thread_id)
            self.nowhere()
            self._remember()

    def _by_record(self):
        """Return what each open record tells."""
        records = (r["id"] for r in records_of(self.world) if r["closed_at"] is None)
        return {record: only("m", self._visible(record)) for record in records}

    def _lost(self, before, hidden):
        """Return what a record tells less often than before.

        Of a line shown again beside what told it already, one of both may go; and both may
        where somebody took that line out of sight once more.
        """
        found, again = set(), self.world.shown_again
        for record, told in before.items():
            now = self._visible(record)
            for atom, less in (told - now).items():
                if less > again[atom] or (not now[atom] and not (again[atom] and atom in hidden)):
                    found.add(atom)
        return found

    @contextmanager
    def around_end_of_all(self):
        """Check that no row is left of a resource, and nothing of what it ever said."""
        with harness():
            self.all()
            counted(self.world)
            said = read_all(text for _, text in stored_texts())
        yield
        with harness():
            self.world.grown()
            self.world.erased |= set(said)
            for model in TABLES:
                if rows := model.objects.count():
                    sentence = f"{rows} rows of {model.__name__} outlived their resource."
                    self.world.broken("destroyed", sentence)
            self._remember()

    def _beside(self, thread_id):
        """Return what is said of a conversation outside of its messages."""
        turns = Turn.objects.filter(thread=thread_id).values_list("prompt", "draft_text")
        said = read_all(text for texts in turns for text in texts)
        # A fork and a memory of another scope have notes and edits of their own copy.
        happened = self.world.happened
        copied = not self.world.alone or happened["forks"] or happened["scopes"]
        return said + (Counter() if copied else self._of_record(thread_id))

    def _of_record(self, thread_id):
        """Return what the record of a conversation alone says."""
        lines = Line.objects.filter(observation__record__thread=thread_id)
        return read_all(lines.values_list("text", flat=True))

    def _no_row_of(self, thread_id):
        """Look for rows of a conversation that is no more."""
        models = (Message, Turn, Cursor, Observation, Cycle, MemoryRecord)
        for model in models:
            if model.objects.filter(thread=thread_id).exists():
                name = self.world.name(thread_id)
                self.world.broken("destroyed", f"{model.__name__} outlived {name}.")
        if Thread.objects.filter(pk=thread_id).exists():
            self.world.broken("destroyed", f"{self.world.name(thread_id)} is still there.")

    def _line_gone(self, line):
        # A fork may say the same of its own copy of the message, and a shared memory is told
        # to those who have none of it.
        own = line.observation.record.thread_id is not None and not self.world.happened["forks"]
        if own and not Line.objects.filter(text=line.text).exists():
            self.world.erased_texts.add(line.text)

    def _all_told(self, record_id):
        lines = Line.objects.filter(observation__record=record_id)
        return read_all(lines.values_list("text", flat=True))

    def _visible(self, record_id):
        lines = Line.objects.filter(
            observation__record=record_id, since__isnull=False, until__isnull=True
        )
        return read_all(lines.values_list("text", flat=True))

    def _atoms(self, thread_id, first, last):
        rows = Message.objects.filter(thread=thread_id, position__range=(first, last))
        return read_all(rows.values_list("text", flat=True))

    def _hit(self, line):
        return only("m", read(line.text))

    def _doomed(self, hit, thread_id, first, last, line):
        """Return what may go out of sight: all that a line says which rests on the erased."""
        spans = _family(thread_id, last) if thread_id else {}
        doomed = Counter(hit)
        for each in Line.objects.select_related("observation"):
            owner = each.observation
            if owner.kind not in ("observation", "discarded"):
                continue
            through = spans.get(owner.thread_id, 0)
            resting = each.first_position <= through and each.last_position >= first
            below = (
                line is not None
                and line.first_position is not None
                and (
                    each.first_position <= line.last_position
                    and each.last_position >= line.first_position
                    and line.observation.kind == "reflection"
                )
            )
            if resting or below:
                doomed.update(read(each.text))
        return doomed

    def _told_again(self, text):
        forked = self.world.happened["forks"]
        return not forked and any(erased in text for erased in self.world.erased_texts)

    def nowhere(self):
        """Look for erased words in every text that is stored."""
        for (model, name), text in stored_texts():
            left = [atom for atom in read(text) if atom in self.world.erased]
            if left:
                place = f"{model.__name__}.{name}"
                self.world.broken(
                    "destroyed", f"{write(left)} was erased, and is in {place}: {text}"
                )
            if model in (Blob, Line) and self._told_again(text):
                place = f"{model.__name__}.{name}"
                self.world.broken("destroyed", f"An erased line is in {place}: {text[-300:]}")


def stored_texts():
    """Yield every text that is stored, with the model and the field it is in."""
    for model, name in TEXTS:
        for text in model.objects.exclude(**{name: ""}).values_list(name, flat=True):
            yield (model, name), text


def _family(thread_id, last):
    """Return up to where each conversation shares the messages of one, by forks up and down."""
    parents = {
        pk: (parent, place or 0)
        for pk, parent, place in Thread.objects.values_list("pk", "parent", "fork_position")
    }
    shared, todo = {}, [(thread_id, last)]
    while todo:
        pk, through = todo.pop()
        if pk not in parents or through <= shared.get(pk, 0):
            continue
        shared[pk] = through
        parent, place = parents[pk]
        todo.append((parent, min(through, place)))
        forks = ((child, own) for child, (above, own) in parents.items() if above == pk)
        todo += [(child, min(through, own)) for child, own in forks]
    return shared


def counted(world):
    """Count from the rows what happened without being asked for by name."""
    for row in Revision.objects.all():
        world.happened[COUNTED.get(row.cause, "other_revisions")] += 1
        if row.cause == "reflect" and row.trigger == "ceiling":
            world.happened["reflections_at_once"] += 1
    discarded = Observation.objects.filter(kind="discarded")
    world.happened["discarded_chunks"] += discarded.count()
    world.happened["interrupted"] += Cycle.objects.filter(interrupted=True).count()


def _sum(rows):
    return {atom for atoms in rows.values() for atom in atoms}


def _by_id(model, *names):
    return {row[0]: row[1:] for row in model.objects.values_list("pk", *names)}
