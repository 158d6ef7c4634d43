"""Put together what the templates of the memory page show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from agents import words
from agents.lines import LineShown
from agents.markers import Fact, doing, facts, state_and_words
from agents.studio.memory.ask import Told, asks_of
from agents.studio.memory.changes import compared, counts_of
from agents.studio.memory.diff import DROPPED
from agents.studio.memory.editor import KINDS, Typed, cost_of, editor_of
from agents.studio.memory.found import answer_of
from agents.studio.memory.reading import Reading
from agents.studio.memory.revisions import CAUSES, UNDOABLE, listed, signed
from agents.studio.memory.rows import groups_of, shown
from memory.models import Cycle, Line, Revision
from memory.services.change import LONGEST_REASON, LONGEST_TEXT, Stale
from memory.services.written import Piece

KEYS = [
    ("[ ]", "older, newer revision; with Shift the reflection before, after"),
    ("j k", "next, previous line"),
    ("e", "edit the line; Enter saves, Shift+Enter starts a new one, Esc closes"),
    ("p", "pin or unpin the line"),
    ("Del", "forget the line"),
    ("x", "tick the line (Shift: all from the last one ticked); p, Del and c then work on these"),
    ("c", "copy the ticked lines"),
    ("u", "undo the last change made by a person"),
    ("o", "where the line comes from"),
    ("d", "what changed (n, N: next, previous change)"),
    ("r", "raw text"),
    ("l", "the list of lines"),
    ("a", "add a note"),
    ("/", "search"),
]


@dataclass(frozen=True)
class Shown:
    """Show which revision is looked at, and what it did."""

    number: int
    words: str
    by: str
    reason: str
    at: str
    clock: str
    is_latest: bool
    tokens: str
    count: int
    change: str
    counts: tuple[tuple[str, int], ...]
    condensed: str
    facts: tuple[Fact, ...]
    call: str


@dataclass(frozen=True)
class RawLine:
    """Show one line of the raw text; ``tokens`` where a line of memory begins."""

    number: int
    text: str
    tokens: str


def context_of(
    reading: Reading,
    *,
    editable: bool,
    typed: Typed | None = None,
    refusal: str = "",
    stale: Stale | None = None,
    note: Typed | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Return what the page shows; what was typed and refused comes with why."""
    body, found = body_of(reading), answer_of(reading)
    known: dict[str, Any] = {
        "asked": reading.asked,
        "record": reading.record,
        "memory": _head(reading, editable),
        "list": listed(reading),
        "links": links_of(reading),
        "shown": shown_revision(reading),
        "answer": found,
        "asks": asks_of(reading) if found and found.count else "",
        "told": told,
        "erased": [_erased(reading, row) for row in reading.erased],
        "editable": editable and reading.is_latest,
        "mayedit": editable,
        "body": body,
        "editor": None,
    }
    if body == "log":
        editor = editor_of(reading, typed=typed, refusal=refusal, stale=stale) if editable else None
        known |= {"editor": editor, "groups": groups_of(reading, editor.line if editor else None)}
        known["row_edit"] = known["links"]["edit"] if known["editable"] else ""
        known |= {"dropped": _dropped(reading), "hidden": _hidden(reading)}
    elif body == "diff":
        known["compared"] = compared(reading)
    elif body == "raw":
        known["raw"] = list(raw_lines(reading.pieces))
    elif body == "cycle":
        known["cycle"] = _cycle(reading)
    if editable:
        known |= {"kinds": KINDS, "longest": LONGEST_TEXT, "longest_reason": LONGEST_REASON}
        known |= {"note": note, "note_refusal": refusal if note else ""}
        known["note_cost"] = cost_of(reading, None)
    return known


def body_of(reading: Reading) -> str:
    """Return which of its states the page is in."""
    if reading.asked.q:
        return "found"
    if reading.cycle is not None:
        return "cycle"
    if not reading.latest:
        return "empty"
    if reading.erased and not reading.lines:
        return "gone"
    return reading.asked.view


def links_of(reading: Reading) -> dict[str, str]:
    """Return the addresses that differ from this one in one thing."""
    asked, (older, newer) = reading.asked.but(cycle=None, edit=None), reading.beside(reading.number)
    found = {view: asked.link(view=view, q="") for view in ("log", "diff", "raw")}
    found |= {seen: asked.link(seen=seen) for seen in ("stored", "agent")}
    found |= {f"by_{group}": asked.link(group=group) for group in ("day", "thread", "priority")}
    found |= {f"sides_{sides}": asked.link(sides=sides) for sides in ("one", "two")}
    found["now"] = asked.link(rev=None)
    found["older"] = asked.link(rev=older) if older else ""
    last = newer == reading.latest
    found["newer"] = asked.link(rev=None if last else newer) if newer else ""
    found["edit"] = asked.before("edit")
    found["opened"] = asked.before("opened")
    found["clear"] = asked.link(q="")
    found["unfilter"] = asked.link(cause="", author="", of=None)
    found["download"] = reverse("memory-raw", args=[reading.thread.pk]) + asked.link(
        rev=reading.number
    )
    return found


def shown_revision(reading: Reading) -> Shown:
    """Return the head of the revision that is shown."""
    row, changes = reading.revision, reading.changes
    at = row.created_at.astimezone(reading.zone) if row else None
    cycle = row.cycle if row else None
    delta = row.tokens_after - row.tokens_before if row else 0
    return Shown(
        number=reading.number,
        words=CAUSES[Revision.Cause(row.cause)] if row else "Nothing remembered yet",
        by=row.author.get_username() if row and row.author else "",
        reason=row.reason if row else "",
        at=at.isoformat() if at else "",
        clock=f"{words.day(at)} {words.clock(at)}" if at else "",
        is_latest=reading.is_latest,
        tokens=words.tokens(reading.tokens),
        count=len(reading.lines),
        change=signed(delta),
        counts=counts_of(changes),
        condensed=_condensed(row) if row and row.cause == Revision.Cause.REFLECT else "",
        facts=tuple(_facts(cycle)) if cycle else (),
        call=f"/context/calls/{cycle.pk}/" if cycle else "",
    )


def _condensed(row: Revision) -> str:
    before, after = row.tokens_before, row.tokens_after
    ratio = words.ratio(before, after)
    return f"{words.tokens(before)} → {words.tokens(after)}" + (f" ({ratio})" if ratio else "")


def _facts(cycle: Cycle) -> Iterator[Fact]:
    yield from facts(cycle, None)
    if cycle.kind in (Cycle.Kind.REFLECT, Cycle.Kind.BUFFER_REFLECTION):
        yield Fact("Compression level", str(cycle.level))


def _head(reading: Reading, editable: bool) -> dict[str, Any]:
    scene, record = reading.scene, reading.record
    return {
        "title": str(reading.thread),
        "shared": f"Shared by {scene.sharers} conversations" if scene.is_shared else "",
        "off": not scene.remembers,
        "pending": words.tokens(scene.extent.pending_tokens),
        "observe": words.tokens(scene.options.thresholds().observe),
        "generation": reading.generation(reading.latest),
        "running": [doing(cycle.kind) for cycle in reading.running],
        "reflecting": any("reflect" in cycle.kind for cycle in reading.running),
        "behind": 0 if reading.is_latest else reading.latest - reading.number,
        "news": reading.news,
        "undo": _undo(reading) if editable else None,
        "chunks": len(scene.chunks) if record else 0,
        "older_kept": record is not None and record.closed_at is not None,
    }


def _undo(reading: Reading) -> dict[str, Any] | None:
    """Return the last change that a person made and that can be taken back by itself."""
    last = next((point for point in reversed(reading.outline) if point.cause in UNDOABLE), None)
    if last is None:
        return None
    return {"number": last.number, "words": CAUSES[Revision.Cause(last.cause)].lower()}


def _erased(reading: Reading, row: Revision) -> dict[str, Any]:
    at = row.created_at.astimezone(reading.zone)
    return {
        "number": row.number,
        "by": row.author.get_username() if row.author else "somebody",
        "clock": f"{words.day(at)} {words.clock(at)}",
        "reason": row.reason,
        "tokens": words.tokens(max(0, row.tokens_before - row.tokens_after)),
    }


def _dropped(reading: Reading) -> dict[str, Any] | None:
    newest, made = reading.newest_reflection, None
    if newest is not None:
        made = reading.merges.get(newest.pk)
    if newest is None or made is None or not reading.dropped:
        return None
    lines = [shown(reading, line) for line in reading.dropped]
    return {"number": newest.since, "lines": lines, "exact": made.exact}


def _hidden(reading: Reading) -> list[LineShown]:
    """Return the lines that the revision shown took out of sight, reflections apart."""
    if reading.revision is None or reading.revision.cause == Revision.Cause.REFLECT:
        return []
    gone: Sequence[Line] = [each.line for each in reading.changes if each.kind == DROPPED]
    return [shown(reading, line) for line in gone]


def raw_lines(pieces: Sequence[Piece]) -> Iterator[RawLine]:
    """Return the raw text line by line, numbered from 1."""
    number = 0
    for piece in pieces:
        for at, text in enumerate(piece.text.split("\n")):
            number += 1
            first = piece.line is not None and at == 0
            yield RawLine(number, text, str(piece.line.tokens) if first and piece.line else "")


def _cycle(reading: Reading) -> dict[str, Any]:
    cycle = reading.cycle
    assert cycle is not None
    state, text = state_and_words(cycle, None)
    is_reflection = "reflect" in cycle.kind
    at = cycle.started_at.astimezone(reading.zone)
    return {
        "state": state,
        "words": text,
        "error": cycle.error,
        "note": cycle.note,
        "at": at.isoformat(),
        "clock": f"{words.day(at)} {words.clock(at)}",
        "next": cycle.next_attempt_at,
        "facts": list(_facts(cycle)),
        "call": f"/context/calls/{cycle.pk}/",
        "operation": "reflect" if is_reflection else "observe",
    }
