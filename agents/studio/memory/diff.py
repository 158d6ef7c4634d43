"""Tell how memory differs between two revisions: by whose line it is first, then by words.

A line is the same line when it is a version of it, or when it alone takes its place: the one
line of a reflection that stands for it. What then is left on both sides is paired by
likeness within a day, so that a line a model wrote anew is told as reworded.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from uuid import UUID

from memory.models import Line

KEPT, REWORDED, MARKED, MERGED, MOVED, DROPPED, ADDED = (
    *("kept", "reworded", "marked", "merged", "moved"),
    *("dropped", "added"),
)
KINDS = (ADDED, REWORDED, MARKED, MERGED, MOVED, DROPPED, KEPT)
ALIKE = 0.8
MOST_COMPARED = 400
"""Lines of one day without a partner on one side, beyond which likeness is not looked for."""

LONGEST_COMPARED = 2_000_000
"""Pairs of words beyond which two texts are shown one after the other."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")

Segments = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Difference:
    """Hold what became of lines: ``old`` are those before, ``new`` is what stands there now."""

    kind: str
    old: tuple[Line, ...] = ()
    new: Line | None = None

    @property
    def line(self) -> Line:
        """Return the line to show: the new one, else the dropped one."""
        return self.new or self.old[0]

    @property
    def segments(self) -> Segments:
        """Return the words of both in order, each marked ``=``, ``-`` or ``+``."""
        if self.new is None:
            return (("-", self.old[0].text),)
        if self.kind == ADDED:
            return (("+", self.new.text),)
        if self.kind == REWORDED:
            return words_between(self.old[0].text, self.new.text)
        return (("=", self.new.text),)


@dataclass(frozen=True)
class Links:
    """Hold which lines are versions of one, by their first, and what reflections made of them."""

    roots: Mapping[UUID, UUID] = field(default_factory=dict)
    parents: Mapping[UUID, tuple[Line, ...]] = field(default_factory=dict)

    def root(self, line: Line) -> UUID:
        """Return the id of the first version of a line."""
        return self.roots.get(line.pk, line.pk)

    def stood_for(self, line: Line, known: Mapping[UUID, Line]) -> list[Line]:
        """Return which known lines, by root, a line stands for through any reflections."""
        found: dict[UUID, Line] = {}
        todo, seen = [*self.parents.get(self.root(line), ())], {self.root(line)}
        while todo:
            parent = todo.pop(0)
            root = self.root(parent)
            if root in seen:
                continue
            seen.add(root)
            if root in known:
                found[root] = known[root]
            else:
                todo += self.parents.get(root, ())
        return list(found.values())


def differences(old: Sequence[Line], new: Sequence[Line], links: Links) -> list[Difference]:
    """Return what became of lines, in the order of the new ones; dropped ones where they stood."""
    before = {links.root(line): line for line in old}
    found = [_of(line, before, links) for line in new]
    gone = _unused(old, found)
    found, gone = _alike(found, gone)
    return list(_in_place(old, found, {line.pk for line in gone}))


def summary(found: Iterable[Difference]) -> dict[str, int]:
    """Return how many lines are of each kind, in the order they are told."""
    counts = Counter(each.kind for each in found)
    return {kind: counts[kind] for kind in KINDS}


def _of(line: Line, before: Mapping[UUID, Line], links: Links) -> Difference:
    same = before.get(links.root(line))
    if same is not None:
        return Difference(_version(same, line), (same,), line)
    stood_for = tuple(links.stood_for(line, before))
    if not stood_for:
        return Difference(ADDED, (), line)
    if len(stood_for) > 1:
        return Difference(MERGED, stood_for, line)
    return Difference(KEPT if stood_for[0].text == line.text else REWORDED, stood_for, line)


def _version(old: Line, new: Line) -> str:
    """Return what became of a line: the same words may be pinned now, or of another priority."""
    if old.text != new.text:
        return REWORDED
    return KEPT if (old.kind, old.pinned) == (new.kind, new.pinned) else MARKED


def _unused(old: Sequence[Line], found: Sequence[Difference]) -> list[Line]:
    used = {line.pk for each in found for line in each.old}
    return [line for line in old if line.pk not in used]


def _alike(
    found: Sequence[Difference], gone: Sequence[Line]
) -> tuple[list[Difference], list[Line]]:
    """Pair added lines with dropped ones that say the same, or nearly so on the same day."""
    left = {line.pk: line for line in gone}
    by_text: dict[str, list[Line]] = defaultdict(list)
    by_day: dict[object, list[Line]] = defaultdict(list)
    for line in gone:
        by_text[line.text].append(line)
        by_day[_day(line)].append(line)
    paired = []
    for each in found:
        if each.kind == ADDED and each.new is not None:
            partner = _partner(each.new, left, by_text[each.new.text], by_day[_day(each.new)])
            if partner is not None:
                del left[partner.pk]
                kind = MOVED if partner.text == each.new.text else REWORDED
                each = Difference(kind, (partner,), each.new)
        paired.append(each)
    return paired, list(left.values())


def _partner(
    line: Line, left: Mapping[UUID, Line], equal: Sequence[Line], of_day: Sequence[Line]
) -> Line | None:
    same = next((each for each in equal if each.pk in left), None)
    if same is not None or len(of_day) > MOST_COMPARED:
        return same
    scored = ((_likeness(line.text, each.text), each) for each in of_day if each.pk in left)
    best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return best[1] if best[0] >= ALIKE else None


def _day(line: Line) -> object:
    return line.said_at.date() if line.said_at else None


def _likeness(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one[:1000], other[:1000], autojunk=False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0.0
    return matcher.ratio()


def _in_place(
    old: Sequence[Line], found: Sequence[Difference], gone: set[UUID]
) -> Iterator[Difference]:
    """Put each dropped line behind what became of the line it stood behind."""
    behind: dict[UUID | None, list[Line]] = defaultdict(list)
    last: UUID | None = None
    for line in old:
        if line.pk in gone:
            behind[last].append(line)
        else:
            last = line.pk
    yield from (Difference(DROPPED, (line,)) for line in behind.pop(None, []))
    for each in found:
        yield each
        for line in each.old:
            yield from (Difference(DROPPED, (one,)) for one in behind.pop(line.pk, []))


@lru_cache(maxsize=2048)
def words_between(old: str, new: str) -> Segments:
    """Return the words of two texts in order, each run marked ``=``, ``-`` or ``+``."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) * len(after) > LONGEST_COMPARED:
        return (("-", old), ("+", new))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    found: list[tuple[str, str]] = []
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            found.append(("=", "".join(before[a:b])))
            continue
        found += [("-", "".join(before[a:b]))] if b > a else []
        found += [("+", "".join(after[c:d]))] if d > c else []
    return tuple(found)
