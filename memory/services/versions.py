"""Follow lines from version to version, and say why one is out of sight.

A line never changes: its text, kind and pin are those of the latest of its versions, each of
which replaces the one before. At most one of them is visible at a revision. Where none is, the
cause of the revision that ended the last one says why, unless memory was made as it had been at
an earlier revision, then or later: then the reason is the one there was at that revision, even
for a line that was out of sight before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from memory.models import Line, Observation, Revision

from .change import Change, Stale, close, succeed

CAME_BACK_TO = "revision "
UNDID = "undo of "
UNSEEN = frozenset({Revision.Cause.REFLECT.value, Revision.Cause.CLEAR.value})


@dataclass(frozen=True)
class Chain:
    """Hold the versions of one line that were ever visible, the oldest first."""

    versions: tuple[Line, ...]

    @property
    def root(self) -> UUID:
        """Return the id of the first version, by which the line is known throughout."""
        return self.versions[0].pk

    @property
    def owner(self) -> Observation:
        """Return the observation, reflection or note the line is of."""
        return self.versions[0].observation

    @property
    def tip(self) -> Line:
        """Return the latest version."""
        return self.versions[-1]

    @property
    def visible(self) -> Line | None:
        """Return the version visible now, if any."""
        return self.tip if self.tip.until is None else None

    def at(self, number: int) -> Line | None:
        """Return the version visible at a revision, if any."""
        latest = self.latest_at(number)
        if latest is None or (latest.until is not None and latest.until <= number):
            return None
        return latest

    def latest_at(self, number: int) -> Line | None:
        """Return the last version that had been shown by a revision, if any."""
        shown = [line for line in self.versions if (line.since or 0) <= number]
        return shown[-1] if shown else None


@dataclass(frozen=True)
class History:
    """Hold all lines of a record by their versions, and the revisions that changed them."""

    chains: tuple[Chain, ...]
    revisions: dict[int, Revision]

    def hidden_by(self, chain: Chain, number: int | None = None) -> Revision | None:
        """Return the change that took a line out of sight, as of a revision, or as of now.

        None when it is visible there, or was never shown by then.
        """
        number = max(self.revisions, default=0) if number is None else number
        latest = chain.latest_at(number)
        if latest is None or latest.until is None or latest.until > number:
            return None
        for back_to in self._came_back_to(latest.until, number):
            if chain.latest_at(back_to) is not None:
                return self.hidden_by(chain, back_to) or self.revisions[latest.until]
        return self.revisions[latest.until]

    def _came_back_to(self, ended: int, number: int) -> list[int]:
        """Return what a line that ended at a revision was made to be as at, the latest first."""
        found: list[int] = []
        before = 0
        for at, back_to, undid in self._jumps:
            if not ended <= at <= number:
                continue
            # Taking a restore back changes why a line is gone, taking another change does not.
            if undid is None or at == ended or ended < before == undid:
                found.append(back_to)
            before = at
        return found[::-1]

    @cached_property
    def _jumps(self) -> list[tuple[int, int, int | None]]:
        """Return which revisions made lines as they had been, as at which, and what they undid."""
        ordered = (self.revisions[number] for number in sorted(self.revisions))
        return [
            (revision.number, back_to, undone(revision))
            for revision in ordered
            if (back_to := came_back_to(revision)) is not None
        ]


def history_of(record_id: UUID) -> History:
    """Return the lines and revisions of a record, in two statements."""
    revisions = Revision.objects.filter(record=record_id)
    return History(tuple(chains_of(_shown(record_id))), {row.number: row for row in revisions})


def _shown(record_id: UUID) -> Iterable[Line]:
    lines = Line.objects.filter(observation__record=record_id, since__isnull=False)
    return lines.select_related("observation").order_by("since", "observation_id", "ordinal")


def chains_of(lines: Iterable[Line]) -> list[Chain]:
    """Return lines, which must come in the order they were shown, as chains."""
    root_of: dict[UUID, UUID] = {}
    versions: dict[UUID, list[Line]] = {}
    for line in lines:
        before = line.replaces_id
        root = root_of.get(before, line.pk) if before is not None else line.pk
        root_of[line.pk] = root
        versions.setdefault(root, []).append(line)
    return [Chain(tuple(found)) for found in versions.values()]


def came_back_to(revision: Revision) -> int | None:
    """Return the revision whose lines a restore or an undo showed again; None for others."""
    if (undid := undone(revision)) is not None:
        return undid - 1
    if not revision.trigger.startswith(CAME_BACK_TO):
        return None
    return int(revision.trigger.removeprefix(CAME_BACK_TO))


def undone(revision: Revision) -> int | None:
    """Return the revision whose changes alone were taken back; None for others."""
    if not revision.trigger.startswith(UNDID):
        return None
    return int(revision.trigger.removeprefix(UNDID))


def going_back_to(number: int) -> str:
    """Return the trigger of a revision that shows the lines of an earlier one again."""
    return f"{CAME_BACK_TO}{number}"


def undoing(number: int) -> str:
    """Return the trigger of a revision that takes the changes of an earlier one back."""
    return f"{UNDID}{number}"


def says_the_same(one: Line | None, other: Line | None) -> bool:
    """Tell whether two versions, or their absence, look the same to everyone."""
    if one is None or other is None:
        return one is other
    return (one.text, one.kind, one.pinned) == (other.text, other.kind, other.pinned)


def settle(now: Change, wanted: Sequence[tuple[Chain, Line | None]]) -> int:
    """Let each line say what the version wanted said, or nothing; return how many changed.

    What is visible and wanted stays as it is. What is wanted and gone is shown again as a
    copy, a successor of the latest version: a row that was ended is never reopened, so that
    every past revision stays as it was. Raises Stale, rolling all back.
    """
    moved = [(c, line) for c, line in wanted if not says_the_same(c.visible, line)]
    close([chain.tip for chain, _ in moved if chain.visible is not None], now.number)
    Line.objects.bulk_create(
        [succeed(chain.tip, now.number, like=line) for chain, line in moved if line is not None]
    )
    return len(moved)


def unmoved(chain: Chain, number: int) -> None:
    """Raise Stale when a line was changed after a revision."""
    if any((line.since or 0) > number or (line.until or 0) > number for line in chain.versions):
        raise Stale(
            "This line was changed again since.", yours=chain.tip.text, current=chain.visible
        )
