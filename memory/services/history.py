"""Read what memory was, who changed it and how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from memory.models import Line, MemoryRecord, Revision

from .anew import anew
from .change import Refused, Stale, change
from .look import visible_lines
from .standing import tells_once
from .versions import Chain, history_of, says_the_same, settle, undoing, unmoved

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Cause = Revision.Cause
INVERSE = {
    Cause.EDIT: Cause.EDIT,
    Cause.NOTE: Cause.FORGET,
    Cause.PIN: Cause.PIN,
    Cause.FORGET: Cause.RESTORE,
    Cause.RESTORE: Cause.RESTORE,
}


@dataclass(frozen=True)
class Comparison:
    """Hold how two revisions differ: lines in order, the changed ones as pairs of old and new."""

    added: tuple[Line, ...]
    removed: tuple[Line, ...]
    changed: tuple[tuple[Line, Line], ...]

    @property
    def tokens(self) -> int:
        """Return by how many tokens the second revision is larger."""
        new = [*self.added, *(after for _, after in self.changed)]
        old = [*self.removed, *(before for before, _ in self.changed)]
        return sum(line.tokens for line in new) - sum(line.tokens for line in old)


def revisions(
    record_id: UUID, *, limit: int | None = None, before: int | None = None
) -> Sequence[Revision]:
    """Return a record's revisions with their authors and cycles, the latest first.

    ``before`` goes on from a revision number, for pages.
    """
    rows = Revision.objects.filter(record=record_id).select_related("author", "cycle", "thread")
    if before is not None:
        rows = rows.filter(number__lt=before)
    return list(rows.order_by("-number")[:limit])


def lines_at(record_id: UUID, number: int) -> list[Line]:
    """Return the lines that were visible at a revision, in order. Raises Refused."""
    latest = MemoryRecord.objects.filter(pk=record_id).values_list("revision", flat=True).first()
    if latest is None:
        raise Refused("There is no such memory.")
    if not 0 <= number <= latest:
        raise Refused(f"There is no revision {number}; the latest is {latest}.")
    return visible_lines(record_id, number)


def compare(record_id: UUID, first: int, second: int) -> Comparison:
    """Return what changed from one revision to another, versions of one line paired.

    The lines that say the same at both are left out. Raises Refused.
    """
    old, new = lines_at(record_id, first), lines_at(record_id, second)
    roots = _roots(record_id) if old and new else {}
    before = {roots.get(line.pk, line.pk): line for line in old}
    after = {roots.get(line.pk, line.pk): line for line in new}
    both = [(before[root], line) for root, line in after.items() if root in before]
    return Comparison(
        added=tuple(line for root, line in after.items() if root not in before),
        removed=tuple(line for root, line in before.items() if root not in after),
        changed=tuple(pair for pair in both if not says_the_same(*pair)),
    )


def _roots(record_id: UUID) -> dict[UUID, UUID]:
    """Return the first version of each line that replaces another."""
    succeeding = Line.objects.filter(observation__record=record_id, replaces__isnull=False)
    roots: dict[UUID, UUID] = {}
    for pk, before in succeeding.order_by("since").values_list("pk", "replaces"):
        if before is not None:
            roots[pk] = roots.get(before, before)
    return roots


@anew
def undo(record_id: UUID, number: int, *, author: User | None = None, reason: str = "") -> int:
    """Make the change of a revision undone, as a new revision; return its number.

    Raises Refused when no person changed lines by it, erased lines were part of it, or what they
    condensed is visible again itself, and Stale when one of its lines was changed again since.
    """
    made = Revision.objects.filter(record=record_id, number=number).first()
    if made is None:
        raise Refused(f"There is no revision {number}.")
    inverse = INVERSE.get(Cause(made.cause))
    if inverse is None:
        raise Refused(
            f"Revision {number} ({made.cause}) cannot be undone by itself; "
            "restore the revision before it instead."
        )
    with change(
        record_id,
        inverse,
        author=author,
        reason=reason or f"Undid revision {number}",
        thread_id=made.thread_id,
        trigger=undoing(number),
    ) as now:
        touched = _touched(history_of(record_id).chains, number)
        for chain in touched:
            unmoved(chain, number)
        wanted = [(chain, chain.at(number - 1)) for chain in touched]
        if not settle(now, wanted):
            raise Refused(f"What revision {number} changed was erased.")
        tells_once(now, [chain for chain, line in wanted if line and not chain.visible])
        return now.number


def _touched(chains: Iterable[Chain], number: int) -> list[Chain]:
    return [
        chain
        for chain in chains
        if any(number in (line.since, line.until) for line in chain.versions)
    ]


__all__ = ["Comparison", "Stale", "compare", "lines_at", "revisions", "undo"]
