"""Make the rows of the memory page: groups of lines under their headers, nothing left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agents import words
from agents.lines import LineShown, line_shown
from agents.studio.memory.reading import Reading, place_of
from memory.models import Line
from memory.services.written import Piece

FOLD_ABOVE = 2_000
RANKS = {
    Line.Kind.HIGH: "High priority",
    Line.Kind.MEDIUM: "Medium priority",
    Line.Kind.LOW: "Low priority",
    Line.Kind.DONE: "Done",
    Line.Kind.PLAIN: "Without a priority",
}


@dataclass(frozen=True)
class Row:
    """Show one line. ``literal`` is its text as the agent reads it, empty where that is not asked.

    ``is_new`` tells that this revision made it, ``is_unseen`` that the reader did not see it yet.
    ``height`` is how many lines of the raw text it stands for.
    """

    line: LineShown
    tokens: int
    is_new: bool = False
    is_unseen: bool = False
    literal: str = ""
    height: int = 1
    stands_for: tuple[LineShown, ...] = ()
    editing: bool = False


@dataclass(frozen=True)
class Group:
    """Show rows under the headers that stand above them; of a folded one only how many."""

    key: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    count: int
    tokens: str
    folded: bool = False


def groups_of(reading: Reading, editing: Line | None = None) -> list[Group]:
    """Return the rows of a revision in groups, folded where they are too many to show at once."""
    parts = list(_parts(reading))
    if editing is not None:
        parts = _with_editor(reading, parts, editing)
    if reading.asked.group != "day":
        parts = _regrouped(reading, parts)
    groups = [_group(key, headers, rows) for key, (headers, rows) in _keyed(parts)]
    return _folded(groups, reading.asked.opened, editing)


Part = tuple[tuple[str, ...], tuple[Row, ...]]


def _parts(reading: Reading) -> Iterator[Part]:
    """Return headers and the rows below them, in the order of the text."""
    headers: list[str] = []
    rows: list[Row] = []
    for piece in reading.pieces:
        if piece.line is not None:
            rows.append(_row(reading, piece, piece.line))
            continue
        if rows:
            yield tuple(headers), tuple(rows)
            headers, rows = [], []
        headers.append(piece.text)
    if headers or rows:
        yield tuple(headers), tuple(rows)


def _row(reading: Reading, piece: Piece, line: Line) -> Row:
    parents = reading.stands_for.get(place_of(line), ())
    tells = len(parents) > 1 or any(parent.text != line.text for parent in parents)
    return Row(
        line=shown(reading, line),
        tokens=line.tokens,
        is_new=line.since == reading.number and reading.number > 1,
        is_unseen=line.pk in reading.news.lines,
        literal=piece.text if reading.asked.seen == "agent" else "",
        height=piece.height,
        stands_for=tuple(shown(reading, parent) for parent in parents if tells),
    )


def shown(reading: Reading, line: Line) -> LineShown:
    """Return a line as pages show it; one of another conversation names that."""
    of = getattr(line, "of_thread", None)
    other = reading.others.get(of) if of is not None and of != reading.thread.pk else None
    return line_shown(line, reading.zone, other)


def _with_editor(reading: Reading, parts: list[Part], line: Line) -> list[Part]:
    """Put the editor in the line's place, or where it stood when it is out of sight."""
    if any(row.line.id == str(line.pk) for _, rows in parts for row in rows):
        return [(headers, _edited(rows, line)) for headers, rows in parts]
    editor = Row(shown(reading, line), line.tokens, height=0, editing=True)
    at = reading.position_of(line)
    found: list[Part] = []
    placed = False
    for headers, rows in parts:
        if not placed and rows and at <= len(rows):
            rows, placed = (*rows[:at], editor, *rows[at:]), True
        at -= len(rows)
        found.append((headers, rows))
    return found if placed else [*found, ((), (editor,))]


def _edited(rows: Sequence[Row], line: Line) -> tuple[Row, ...]:
    return tuple(replace(r, editing=True) if r.line.id == str(line.pk) else r for r in rows)


def _regrouped(reading: Reading, parts: Iterable[Part]) -> list[Part]:
    """Return the rows by conversation or by priority, whatever day they are of."""
    found: dict[str, list[Row]] = {}
    if reading.asked.group == "priority":
        found = {RANKS[kind]: [] for kind in RANKS}
    for _, rows in parts:
        for row in rows:
            found.setdefault(_heading(reading, row), []).append(row)
    return [((name,), tuple(rows)) for name, rows in found.items() if rows]


def _heading(reading: Reading, row: Row) -> str:
    if reading.asked.group == "priority":
        return RANKS[Line.Kind(row.line.kind)]
    return row.line.title or (str(reading.thread) if reading.scene.is_shared else "This memory")


def _keyed(parts: Iterable[Part]) -> Iterator[tuple[str, Part]]:
    """Name each group by its last header, which is its day, and by its turn if there are two."""
    seen: Counter[str] = Counter()
    for headers, rows in parts:
        name = "-".join("".join(c if c.isalnum() else " " for c in "".join(headers[-1:])).split())
        seen[name] += 1
        yield f"{name[:40]}-{seen[name]}", (headers, rows)


def _group(key: str, headers: tuple[str, ...], rows: tuple[Row, ...]) -> Group:
    tokens = words.tokens(sum(row.tokens for row in rows))
    return Group(
        key, headers, rows, sum(not (row.editing and not row.height) for row in rows), tokens
    )


def _folded(groups: Sequence[Group], opened: str, editing: Line | None) -> list[Group]:
    """Fold the oldest groups where all together have too many rows; those asked for stay."""
    shown_rows = 0
    found: list[Group] = []
    for group in reversed(groups):
        asked = group.key == opened or _holds(group, opened)
        asked = asked or (editing is not None and _holds(group, str(editing.pk)))
        fits = shown_rows + group.count <= FOLD_ABOVE
        if fits or asked:
            shown_rows += group.count
            found.append(group)
        else:
            found.append(replace(group, rows=(), folded=True))
    return found[::-1]


def _holds(group: Group, line_id: str) -> bool:
    return any(row.line.id == line_id for row in group.rows)
