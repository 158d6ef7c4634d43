"""Show how memory differs between two revisions: what stayed is folded, words are marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agents.lines import SUB_POINT, LineShown
from agents.studio.memory.diff import (
    ADDED,
    DROPPED,
    KEPT,
    KINDS,
    MARKED,
    MERGED,
    MOVED,
    REWORDED,
    Difference,
    Segments,
    summary,
)
from agents.studio.memory.reading import Reading
from agents.studio.memory.revisions import signed
from agents.studio.memory.rows import RANKS, shown
from memory.models import Line

SHOWN_AROUND = 2
WORDS = {
    KEPT: "unchanged",
    REWORDED: "reworded",
    MARKED: "marked anew",
    MERGED: "merged",
    MOVED: "moved",
    DROPPED: "dropped",
    ADDED: "added",
}


@dataclass(frozen=True)
class Change:
    """Show what became of one line. ``was`` are the lines before it, ``also`` what else changed."""

    kind: str
    words: str
    line: LineShown
    segments: Segments
    was: tuple[LineShown, ...] = ()
    also: str = ""

    @property
    def before(self) -> tuple[Segments, ...]:
        """Return what stood there before: a text for each line, its words marked."""
        if self.was:
            sign = "=" if self.kind == MOVED else "-"
            return tuple(((sign, line.text),) for line in self.was)
        words = tuple(each for each in self.segments if each[0] != "+")
        return (words,) if words else ()

    @property
    def after(self) -> Segments:
        """Return what stands there now, its words marked; nothing where the line was dropped."""
        return tuple(each for each in self.segments if each[0] != "-")


@dataclass(frozen=True)
class Run:
    """Show changes one after the other; of ``folded`` ones, how many, until they are opened."""

    key: str
    changes: tuple[Change, ...]
    folded: bool = False


@dataclass(frozen=True)
class Compared:
    """Show two revisions beside each other."""

    old: int
    new: int
    runs: tuple[Run, ...]
    counts: tuple[tuple[str, int], ...]
    tokens: str
    same: bool


def compared(reading: Reading) -> Compared:
    """Return how the revision shown differs from the one it is compared with."""
    found = reading.differences
    before = {line.pk: line for each in found for line in each.old}
    tokens = reading.tokens - sum(line.tokens for line in before.values())
    return Compared(
        old=reading.compared_with,
        new=reading.number,
        runs=tuple(_runs(reading, found)),
        counts=counts_of(found),
        tokens=signed(tokens),
        same=all(each.kind == KEPT for each in found),
    )


def counts_of(found: Iterable[Difference]) -> tuple[tuple[str, int], ...]:
    """Return how many lines were changed how, those kinds only that there are."""
    counts = summary(found)
    return tuple((WORDS[kind], counts[kind]) for kind in KINDS if counts[kind])


def _runs(reading: Reading, found: Sequence[Difference]) -> Iterator[Run]:
    for kept, group in groupby(found, key=lambda each: each.kind == KEPT):
        rows = tuple(_change(reading, each) for each in group)
        key = f"run-{rows[0].line.id}"
        if not kept or len(rows) <= 2 * SHOWN_AROUND + 1:
            yield Run(key, rows)
            continue
        yield Run(key, rows[:SHOWN_AROUND])
        yield Run(f"{key}-folded", rows[SHOWN_AROUND:-SHOWN_AROUND], folded=True)
        yield Run(f"{key}-after", rows[-SHOWN_AROUND:])


def _change(reading: Reading, each: Difference) -> Change:
    return Change(
        kind=each.kind,
        words=WORDS[each.kind],
        line=shown(reading, each.line),
        segments=_unmarked(each.segments),
        was=tuple(shown(reading, line) for line in each.old)
        if each.kind in (MERGED, MOVED)
        else (),
        also=_also(each),
    )


def _unmarked(segments: Segments) -> Segments:
    """Take away the mark of a sub point at the start: its place shows it."""
    if not segments or not segments[0][1].startswith(SUB_POINT):
        return segments
    return ((segments[0][0], segments[0][1].removeprefix(SUB_POINT)), *segments[1:])


def _also(each: Difference) -> str:
    """Say what changed besides the words."""
    if each.new is None or not each.old or each.kind == MERGED:
        return ""
    old, new, said = each.old[0], each.new, []
    if old.kind != new.kind:
        said.append(f"{RANKS[Line.Kind(old.kind)]} became {RANKS[Line.Kind(new.kind)].lower()}")
    if old.pinned != new.pinned:
        said.append("now pinned" if new.pinned else "no longer pinned")
    return ", ".join(said)
