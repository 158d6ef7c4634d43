"""Recompute from the raw tables what memory was at each revision, and what must hold of it.

Each revision is judged by what it may change. Observing shows what the Observer said of the
messages, whole; condensing, pinning and settings change nothing that is said; editing keeps
the messages and adds the person's word; forgetting and clearing only take away, showing again
only adds. No message is told twice, unless somebody showed it again. So a message goes out of
sight only by somebody's word, and each that is covered is either visible or was taken away by
name.
"""

from collections import Counter, defaultdict
from itertools import pairwise

from memory.models import Blob, Cursor, Cycle, Line, MemoryRecord, Message, Observation, Revision

from .atoms import only, read, read_all, write
from .requests import read_payload

BACK = "revision "
UNDID = "undo of "
COPIES = ("fork", "scope", "import")
SAME = ("reflect", "pin", "config")
LESS = ("forget", "clear")
PEOPLE = ("forget", "clear", "restore", "edit", "erase")


class Tables:
    """Hold the raw rows of one record."""

    def __init__(self, record):
        self.record = record
        own = {"record": record["id"]}
        lines = Line.objects.filter(observation__record=record["id"]).order_by("since", "ordinal")
        self.lines = list(lines.values())
        for line in self.lines:
            line["atoms"] = read(line["text"])
        rows = Observation.objects.filter(**own).order_by("first_position")
        self.rows = {row["id"]: row for row in rows.values()}
        self.revisions = list(Revision.objects.filter(**own).order_by("number").values())
        self.cursors = {row["thread_id"]: row for row in Cursor.objects.filter(**own).values()}
        self.cycles = {row["id"]: row for row in Cycle.objects.filter(**own).values()}
        self.causes = {row["number"]: row for row in self.revisions}
        self.shown, self.ended = defaultdict(list), defaultdict(list)
        for line in self.lines:
            self.shown[line["since"]].append(line)
            self.ended[line["until"]].append(line)

    def copied(self, row):
        """Tell whether a row was copied from another record, or lines of it destroyed."""
        return self.erased_through() > 0 or self.causes.get(row["since"], {}).get("cause") in COPIES

    def erased_through(self):
        """Return the last revision whose past was destroyed."""
        erased = [n for n, row in self.causes.items() if row["cause"] == "erase"]
        return max(erased, default=0)

    def lines_of(self, row_id):
        return [line for line in self.lines if line["observation_id"] == row_id]

    def shown_again(self):
        """Return what somebody showed again line by line, once for each time."""
        causes = ((n, row["cause"], row["trigger"]) for n, row in self.causes.items())
        by = [n for n, cause, trigger in causes if cause == "restore" and not trigger]
        return sum((line["atoms"] for n in by for line in self.shown[n]), Counter())

    def observed(self):
        """Return the rows that stand for messages now."""
        shown = (row for row in self.rows.values() if row["since"] is not None)
        return [row for row in shown if row["kind"] == "observation"]


def records_of(world):
    """Return all records of a world, closed ones too, as rows."""
    found = MemoryRecord.objects.filter(resource=world.resource_id).order_by("created_at", "id")
    return list(found.values())


def said_by(world):
    """Return the atoms of each message, by thread and position."""
    rows = Message.objects.filter(thread__resource=world.resource_id).order_by("position")
    said = defaultdict(dict)
    for thread, position, payload in rows.values_list("thread", "position", "payload"):
        said[thread][position] = read_payload(payload)
    return said


def audit(world):
    """Note in the world what is wrong with its rows."""
    said = said_by(world)
    holders = Counter(a for rows in said.values() for a in {a for c in rows.values() for a in c})
    _said_once(world, said)
    for record in records_of(world):
        tables = Tables(record)
        name = f"record {world.name_of_record(record['id'])}"
        _history(world, name, tables, said, holders)
        _covered(world, name, tables, said)
        _empty(world, name, tables)
        _ranges(world, name, tables, said)
        _pins(world, name, tables)


def _said_once(world, said):
    """Look for messages that were stored twice."""
    for thread, rows in said.items():
        total = sum(rows.values(), Counter())
        twice = [atom for atom, count in total.items() if count > 1]
        if twice:
            world.broken("coverage", f"{world.name(thread)} says {write(twice)} more than once.")


def _history(world, name, tables, said, holders):
    """Judge every revision by what is visible before and after it."""
    visible, erased = Counter(), tables.erased_through()
    past = {0: Counter()}
    again = world.shown_again | tables.shown_again()
    for number, row in sorted(tables.causes.items()):
        before = Counter(visible)
        for line in tables.ended[number]:
            visible.subtract(line["atoms"])
        for line in tables.shown[number]:
            visible.update(line["atoms"])
        visible = +visible
        past[number] = Counter(visible)
        where = f"In {name}, revision {number} ({row['cause']} {row['trigger']})"
        if number > erased:
            _judge(world, where, tables, row, before, visible, past, said)
        most = {a: max(1, holders[a]) + again[a] for a in visible}
        many = {a for a, n in only("m", visible).items() if n > most[a]}
        if many and number > erased:
            world.broken("coverage", f"{where} tells {write(many)} more than once.")


def _judge(world, where, tables, row, before, after, past, said):
    cause, number = row["cause"], row["number"]
    if row["trigger"].startswith(UNDID):
        return None
    if row["trigger"].startswith(BACK):
        return _back(world, where, row, past, after)
    if number == min(tables.causes) and cause in COPIES:
        return None  # Compared with what was copied, when it was.
    if cause == "reflect":
        # A fork in a shared memory observes its own copy of a raw tail, so that a message may be
        # told twice; a Reflector that tells it once loses nothing.
        before = Counter({atom: min(count, max(1, after[atom])) for atom, count in before.items()})
    if cause in SAME:
        _equal(
            world,
            where,
            before,
            after,
            "edits" if before - after and not only("m", before - after) else "coverage",
        )
    elif cause in ("activate", "observe"):
        _equal(world, where, before + _observed(tables, number, said), after, "coverage")
    elif cause == "edit" or cause == "note":
        _equal(world, where, only("m", before), only("m", after), "edits")
    elif cause == "restore":
        _equal(world, where, before, before & after, "edits")
    elif cause in LESS and after - before:
        world.broken("edits", f"{where} brought back {write(after - before)}.")
    return None


def _back(world, where, row, past, after):
    number = int(row["trigger"].removeprefix(BACK))
    if row["cause"] == "restore":
        lost = past.get(number, Counter()) - after
        if lost:
            world.broken("edits", f"{where} did not show {write(lost)} again.")


def _equal(world, where, wanted, got, invariant):
    if lost := wanted - got:
        world.broken(invariant, f"{where} lost {write(lost)}.")
    if more := got - wanted:
        world.broken(invariant, f"{where} brought {write(more)}.")


def _observed(tables, number, said):
    """Return what the messages said that a revision covers, as far as anything was kept."""
    told = Counter()
    for row in tables.rows.values():
        if row["since"] == number and row["kind"] == "observation" and tables.lines_of(row["id"]):
            atoms = sum((said[row["thread_id"]][p] for p in positions(row, said)), Counter())
            if _erased_unseen(tables, row):
                written = {atom for line in tables.lines for atom in line["atoms"]}
                atoms = Counter({atom: n for atom, n in atoms.items() if atom in written})
            told.update(atoms)
    return told


def _erased_unseen(tables, row):
    """Tell whether lines of a row may have been erased between being written and being shown."""
    cycle = tables.cycles.get(row["cycle_id"])
    early = (r for r in tables.revisions if r["cause"] == "erase" and r["number"] < row["since"])
    return cycle is not None and any(cycle["started_at"] <= r["created_at"] for r in early)


def positions(row, said):
    """Return where the messages are that a row covers, as far as they are there."""
    known = said.get(row["thread_id"], {})
    return [p for p in known if row["first_position"] <= p <= row["last_position"]]


def _covered(world, name, tables, said):
    """Look for every covered message among the visible lines, or for who took it away."""
    visible = read_all(x["text"] for x in tables.lines if x["since"] and x["until"] is None)
    for row in tables.observed():
        for position in positions(row, said):
            for atom in said[row["thread_id"]][position]:
                if not visible[atom] and not _verdict(world, tables, row, atom, said):
                    where = f"message {position} of {world.name(row['thread_id'])} ({atom})"
                    world.broken("coverage", f"In {name}, {where} is neither raw nor told.")


def _verdict(world, tables, row, atom, said):
    """Return why a covered message is told nowhere; nothing when no reason is recorded."""
    if not world.alone and (_is_copy(tables) or tables.erased_through()):
        return "nobody watched when it was copied or erased"
    if atom in world.gone[tables.record["id"]]:
        return "erased, or absent from the memory that was copied"
    telling = [line for line in tables.lines if line["atoms"][atom] and line["since"]]
    if telling:
        last = max(telling, key=lambda line: line["until"])
        cause = tables.causes[last["until"]]["cause"]
        return cause if cause in PEOPLE else ""
    lines, cycle = tables.lines_of(row["id"]), tables.cycles.get(row["cycle_id"])
    written = cycle is not None and cycle["status"] == "done"
    if not lines and row["cycle_id"] is None and not world.alone:
        # A fork in a shared memory is covered by what was made of its parent's messages.
        made = (other for other in tables.rows.values() if _made_of(tables, other, atom, said))
        return next(filter(None, (_verdict(world, tables, x, atom, said) for x in made)), "")
    return "nothing worth keeping" if not lines and written else ""


def _made_of(tables, row, atom, said):
    """Tell whether an Observer was shown a message that says an atom, and a row came of it."""
    shown = row["kind"] == "observation" and row["since"] is not None and row["cycle_id"]
    return shown and any(atom in said[row["thread_id"]][p] for p in positions(row, said))


def _is_copy(tables):
    first = tables.causes.get(min(tables.causes, default=0))
    return first is not None and first["cause"] in COPIES


def _empty(world, name, tables):
    """Look for rows that a cycle left which brought nothing."""
    for row in tables.rows.values():
        cycle = tables.cycles.get(row["cycle_id"])
        if cycle is not None and cycle["status"] != "done":
            sentence = f"In {name}, a cycle that {cycle['status']} left {row['kind']} behind."
            world.broken("empty", sentence)
    for row in tables.rows.values():
        said_nothing = row["kind"] == "observation" and not tables.lines_of(row["id"])
        cycle = tables.cycles.get(row["cycle_id"])
        if said_nothing and cycle is not None and not tables.copied(row):
            _said_so(world, name, row, Blob.objects.filter(hash=cycle["reply_hash"]).first())


def _said_so(world, name, row, reply):
    if reply is not None and "(none)" not in reply.text:
        where = f"{row['first_position']} to {row['last_position']}"
        world.broken("empty", f"In {name}, nothing is observed of {where}, and nobody said so.")


def _ranges(world, name, tables, said):
    """Compare ranges with messages and cursors."""
    by_thread = defaultdict(list)
    for row in tables.rows.values():
        if row["kind"] == "observation":
            by_thread[row["thread_id"]].append(row)
    for thread, rows in by_thread.items():
        where = f"In {name}, {world.name(thread)}"
        for before, row in pairwise(rows):
            between = [
                p for p in said[thread] if before["last_position"] < p < row["first_position"]
            ]
            if between or before["last_position"] >= row["first_position"]:
                world.broken("order", f"{where} has a gap or overlap at {row['first_position']}.")
        if any(p < rows[0]["first_position"] for p in said[thread]):
            world.broken("order", f"{where} is not observed from its beginning.")
        buffered = rows[-1]["last_position"]
        observed = max((r["last_position"] for r in rows if r["since"] is not None), default=0)
        cursor = tables.cursors.get(thread, {"buffered_through": 0, "observed_through": 0})
        stands = cursor["buffered_through"], cursor["observed_through"]
        if stands != (buffered, observed):
            world.broken("order", f"{where} has its cursor at {stands}, not {buffered, observed}.")


def _pins(world, name, tables):
    """Look for pinned lines that a reflection took the place of."""
    for line in tables.lines:
        row = tables.causes.get(line["until"])
        if line["pinned"] and row is not None and row["cause"] == "reflect":
            world.broken("edits", f"In {name}, a reflection took {write(line['atoms'])}, pinned.")
