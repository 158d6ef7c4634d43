"""Compare two requests: how long they are the same from the start, and what differs by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest

from agents.studio.context.inspected import PROMPT, Inspected, Part
from memory.tokens import BY_LINE

MOST_LINES = 4000
AROUND = 2
NAMES = {
    "instructions": "System instructions",
    "tools": "Tool definitions",
    "memory": "Observations",
    "message": "Messages not yet observed",
    "others": "Other conversations",
    "reminder": "Reminder",
    "prompt": "The turn’s own messages",
    "left_out": "Left out",
}


@dataclass(frozen=True)
class Unit:
    """Hold a piece of a request that is the same or not: a text, or one message."""

    kind: str
    identity: str
    tokens: int
    text: str | None = None

    @property
    def words(self) -> str:
        """Return what people call it."""
        if self.identity.startswith("#"):
            return f"message {self.identity[1:]}"
        return NAMES.get(self.kind, self.kind).lower()

    @property
    def named(self) -> str:
        """Return the same within a sentence."""
        return self.words if self.identity.startswith("#") else f"the {self.words}"


@dataclass(frozen=True)
class Prefix:
    """Hold how many tokens two requests share from the start, and what comes first after them.

    ``broken_at`` is empty where one is the beginning of the other.
    """

    tokens: int
    total: int
    broken_at: str = ""
    ends_with: str = ""

    @property
    def share(self) -> float:
        """Return the share of the newer request."""
        return self.tokens / self.total if self.total else 0.0


def units(request: Inspected) -> Iterator[Unit]:
    """Yield the pieces of a request in the order they are sent."""
    for part in request.sent:
        if not part.of_messages:
            yield Unit(part.kind, part.hash or part.text or "", part.tokens, part.text)
            continue
        for said in part.said:
            yield Unit(part.kind, f"#{said.position}", said.tokens)


def prefix(old: Inspected, new: Inspected) -> Prefix:
    """Return what of the newer request is the same, byte by byte, from its start."""
    pairs = list(zip_longest(units(old), units(new)))
    same = list(takewhile(lambda pair: _are_same(*pair), pairs))
    tokens = sum(after.tokens for _, after in same if after is not None)
    if len(same) == len(pairs):
        return Prefix(tokens, new.total)
    before, after = pairs[len(same)]
    if before is None:
        return Prefix(tokens, new.total, ends_with="it only goes on where the other one ended")
    broken = after or before
    if before and after and before.kind == after.kind and before.text and after.text:
        shared = after.text[: _alike(before.text, after.text)]
        tokens += min(BY_LINE.count(shared), after.tokens)
    if before and after and before.kind != after.kind:
        return Prefix(tokens, new.total, broken_at=f"{after.words}, in place of {before.named}")
    return Prefix(tokens, new.total, broken_at=broken.words)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items two sequences begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _are_same(one: Unit | None, other: Unit | None) -> bool:
    return one is not None and other is not None and one.identity == other.identity


@dataclass(frozen=True)
class Change:
    """Hold how a block differs: ``look`` is same, changed, new or gone."""

    look: str
    words: str


SAME = Change("same", "= same")
UNCOMPARED = Change("same", "")


def change(kind: str, old: Inspected, new: Inspected) -> Change:
    """Return how the block of a kind differs in the newer request."""
    before, after = old.of(kind), new.of(kind)
    if not before and not after:
        return UNCOMPARED
    if not before or not after:
        return Change("new", "new") if after else Change("gone", "gone")
    if after[0].of_messages:
        return _of_messages(before, after)
    return _of_texts(before[0], after[0])


def _of_messages(before: Sequence[Part], after: Sequence[Part]) -> Change:
    was, is_ = (
        {said.position for part in parts for said in part.said} for parts in (before, after)
    )
    if was == is_:
        return SAME
    if was.isdisjoint(is_) and after[0].kind == PROMPT:
        return Change("new", "new")
    return Change("changed", _counted(len(is_ - was), len(was - is_), "message"))


def _of_texts(before: Part, after: Part) -> Change:
    if before.hash == after.hash and before.hash:
        return SAME
    if before.text is None or after.text is None:
        return Change("changed", "≠ changed")
    if before.text == after.text:
        return SAME
    signs = [line.sign for line in lines(before.text, after.text)]
    return Change("changed", _counted(signs.count("+"), signs.count("-"), "line"))


def _counted(more: int, fewer: int, unit: str) -> str:
    said = [f"+{more}"] * bool(more) + [f"−{fewer}"] * bool(fewer)
    if not said:
        return "≠ changed"
    last = more if more and not fewer else fewer
    return f"{' '.join(said)} {unit}{'' if last == 1 else 's'}"


@dataclass(frozen=True)
class Line:
    """Show one line of a comparison; ``sign`` is ``+``, ``-``, a blank, or ``…`` for many alike."""

    sign: str
    text: str


def lines(old: str, new: str) -> Iterator[Line]:
    """Yield all lines of two texts, those that differ with their sign.

    What both begin and end with is set aside first, since little differs in most requests.
    """
    before, after = old.splitlines(), new.splitlines()
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    yield from (Line(" ", text) for text in after[:start])
    yield from _middle(before[start : len(before) - end], after[start : len(after) - end])
    yield from (Line(" ", text) for text in after[len(after) - end :])


def _middle(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    if len(before) + len(after) > MOST_LINES:
        yield from (Line("-", text) for text in before)
        yield from (Line("+", text) for text in after)
        return
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (Line(" ", text) for text in after[c:d])
            continue
        yield from (Line("-", text) for text in before[a:b])
        yield from (Line("+", text) for text in after[c:d])


def folded(all_lines: Sequence[Line]) -> list[Line]:
    """Return the lines that differ with what is around them, the rest counted."""
    near: set[int] = set()
    for index, line in enumerate(all_lines):
        if line.sign in "+-":
            near.update(range(index - AROUND, index + AROUND + 1))
    shown: list[Line] = []
    hidden = 0
    for index, line in enumerate(all_lines):
        if index in near:
            shown += _skipped(hidden)
            shown.append(line)
            hidden = 0
        else:
            hidden += 1
    return [*shown, *_skipped(hidden)]


def _skipped(count: int) -> list[Line]:
    return [Line("…", f"{count} equal line{'' if count == 1 else 's'}")] if count else []
