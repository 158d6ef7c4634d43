"""Check that covered text is visible, or absent for a recorded reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from memory.models import Line, Observation
from memory.tokens import count_line

from .report import Violation
from .rows import Memory, Row

KINDS = frozenset(Line.Kind.values)
VERDICTS = frozenset({"forget", "clear", "erase", "restore"})
SHOWS_AGAIN = frozenset({"restore", "erase"})


def check_lines(memory: Memory) -> Iterator[Violation]:
    """Check each line by itself, against its observation, and what became of it."""
    trace = _Trace(memory)
    for line in memory.lines.values():
        owner = memory.observations[line["observation_id"]]
        yield from _itself(line)
        yield from _within(line, owner)
        yield from _visibility(memory, line, owner)
        yield from _successor(memory, line)
        yield from trace.of(line)
    yield from _sums(memory)


def _violation(invariant: str, line: Row, what: str, **rows: object) -> Violation:
    named = {"line": line["id"], "observation": line["observation_id"], **rows}
    return Violation(invariant, f"Line {line['id']} {what}.", named)


def _itself(line: Row) -> Iterator[Violation]:
    if line["kind"] not in KINDS:
        yield _violation("lines.kind", line, f'is of the unknown kind "{line["kind"]}"')
    elif (tokens := count_line(line["kind"], line["text"], line["said_at"])) != line["tokens"]:
        what = f"has {tokens} tokens, and {line['tokens']} are stored"
        yield _violation("lines.tokens", line, what)
    since, until = line["since"], line["until"]
    if until is not None and (since is None or since >= until):
        yield _violation("lines.span", line, f"is visible since {since} until {until}")


def _within(line: Row, owner: Row) -> Iterator[Violation]:
    first, last = line["first_position"], line["last_position"]
    if (first is None) != (last is None) or (first is not None and last < first):
        yield _violation("lines.sources", line, f"rests on {first}–{last}, which is no range")
    elif first is not None and not _covers(owner, first, last):
        what = (
            f"rests on {first}–{last}, outside the range "
            f"{owner['first_position']}–{owner['last_position']} of its observation"
        )
        yield _violation("lines.sources", line, what)


def _covers(owner: Row, first: int, last: int) -> bool:
    if owner["kind"] != Observation.Kind.OBSERVATION.value:
        return True
    return bool(owner["first_position"] <= first and last <= owner["last_position"])


def _visibility(memory: Memory, line: Row, owner: Row) -> Iterator[Violation]:
    since, shown = line["since"], owner["since"]
    if shown is None:
        if since is not None:
            what = f"is visible since {since}, but its {owner['kind']} is not shown"
            yield _violation("lines.owner", line, what)
    elif line["replaces_id"] is not None:
        if since is None or since < shown:
            what = f"took another's place at {since}, its {owner['kind']} is shown since {shown}"
            yield _violation("lines.owner", line, what)
    elif since != shown and not _is_copy(memory, line, owner):
        what = f"is visible since {since}, and its {owner['kind']} since {shown}"
        yield _violation("lines.owner", line, what)


def _is_copy(memory: Memory, line: Row, owner: Row) -> bool:
    """Tell whether a reflection copied with a row stands for its line, or did until erased."""
    cause = memory.causes.get(line["since"])
    if not memory.copied(owner) or (line["since"] is not None and cause != "erase"):
        return False
    return any(
        owner["id"] in sources and memory.copied(memory.observations[reflection])
        for reflection, sources in memory.sources_of.items()
    )


def _successor(memory: Memory, line: Row) -> Iterator[Violation]:
    if line["replaces_id"] is None:
        return
    old = memory.lines.get(line["replaces_id"])
    if old is None:
        yield _violation("lines.successor", line, "takes the place of a line of another record")
    elif old["observation_id"] != line["observation_id"]:
        what = f"takes the place of line {old['id']} of another observation"
        yield _violation("lines.successor", line, what, replaces=old["id"])
    elif line["since"] is not None and (old["until"] is None or old["until"] > line["since"]):
        what = f"takes the place of line {old['id']}, which is still visible at {line['since']}"
        yield _violation("lines.successor", line, what, replaces=old["id"])
    elif line["since"] is not None and line["since"] > old["until"]:
        yield from _again(memory, line, old)


def _again(memory: Memory, line: Row, old: Row) -> Iterator[Violation]:
    """Check that a line out of sight, as one forgotten is, came back by a verdict only."""
    cause = memory.causes.get(line["since"])
    if cause is not None and cause not in SHOWS_AGAIN:
        what = (
            f'shows again, at revision {line["since"]} ("{cause}"), '
            f"what revision {old['until']} had taken out of sight"
        )
        yield _violation("lines.again", line, what, replaces=old["id"])


class _Trace:
    """Say of each closed line what stands in its place, or which verdict took it away."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._successors: dict[UUID, set[int]] = defaultdict(set)
        for line in memory.lines.values():
            if line["replaces_id"] is not None:
                self._successors[line["replaces_id"]].add(line["since"])
        self._reflected: dict[UUID, set[int]] = defaultdict(set)
        for reflection, sources in memory.sources_of.items():
            for source in sources:
                self._reflected[source].add(memory.observations[reflection]["since"])

    def of(self, line: Row) -> Iterator[Violation]:
        """Yield a violation when a line is gone and nothing tells why.

        Each line is followed one step: what stands in its place is a line itself.
        """
        until = line["until"]
        cause = self._memory.causes.get(until)
        if line["pinned"] and cause == "reflect":
            what = f"is pinned, and the reflection of revision {until} did not leave it standing"
            yield _violation("lines.pinned", line, what, revision=until)
        if until is None or cause is None or cause in VERDICTS:
            return
        if until in self._successors[line["id"]]:
            return
        if cause == "reflect" and until in self._reflected[line["observation_id"]]:
            return
        what = f'was closed by revision {until} ("{cause}"), and nothing stands in its place'
        yield _violation("lines.lost", line, what, revision=until)


def _sums(memory: Memory) -> Iterator[Violation]:
    for row in memory.observations.values():
        lines = memory.lines_of.get(row["id"], [])
        original = sum(line["tokens"] for line in lines if line["replaces_id"] is None)
        if original != row["tokens"]:
            sentence = (
                f"The lines of {row['kind']} {row['id']} have {original} tokens, "
                f"and {row['tokens']} are stored."
            )
            yield Violation("lines.sum", sentence, {"observation": row["id"]})
