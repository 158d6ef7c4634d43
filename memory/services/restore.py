"""Show again what was visible at an earlier revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from memory.models import Line, MemoryRecord, Observation, Revision

from .anew import anew
from .change import Refused, change
from .sizes import place_of, size_of
from .versions import (
    UNSEEN,
    Chain,
    History,
    going_back_to,
    history_of,
    says_the_same,
    settle,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True)
class Preview:
    """Say in numbers what a restore would do: lines shown again, hidden and changed, and tokens."""

    shown: int
    hidden: int
    changed: int
    tokens_before: int
    tokens_after: int

    @property
    def changes_nothing(self) -> bool:
        """Tell whether memory is as it was."""
        return not (self.shown or self.hidden or self.changed)


def preview(record_id: UUID, number: int) -> Preview:
    """Return what restoring a revision would do now; nothing is written."""
    history = history_of(record_id)
    zone = MemoryRecord.objects.values_list("resource__time_zone", flat=True).get(pk=record_id)
    chains = sorted(history.chains, key=lambda chain: place_of(chain.tip, chain.owner))
    pairs = [(chain.visible, _wanted(history, chain, number)) for chain in chains]
    return _counted(pairs, ZoneInfo(zone))


def _counted(pairs: Sequence[tuple[Line | None, Line | None]], zone: ZoneInfo) -> Preview:
    moved = [(now, wanted) for now, wanted in pairs if not says_the_same(now, wanted)]
    shown = sum(now is None for now, _ in moved)
    hidden = sum(wanted is None for _, wanted in moved)
    return Preview(
        shown=shown,
        hidden=hidden,
        changed=len(moved) - shown - hidden,
        tokens_before=size_of((now for now, _ in pairs if now is not None), zone),
        tokens_after=size_of((wanted for _, wanted in pairs if wanted is not None), zone),
    )


@anew
def restore(record_id: UUID, number: int, *, author: User | None = None, reason: str = "") -> int:
    """Show the lines visible at a revision, and what was observed since; return the revision made.

    Edits, pins, notes, forgets, clears and reflections made after ``number`` are undone;
    observing never is: what was observed after it stays, as edited or forgotten since, and
    comes back where a later reflection or a clear took it. Lines that had ended are shown as
    copies, successors of their latest version, so that every past revision stays as it was.
    Raises Refused when there is no such revision, or memory is as it was then.
    """
    with change(
        record_id,
        Revision.Cause.RESTORE,
        author=author,
        reason=reason,
        trigger=going_back_to(number),
    ) as now:
        if not 0 <= number < now.number - 1:
            raise Refused(
                f"Revision {number} cannot be restored: name one from 0 to {now.number - 2}."
            )
        history = history_of(record_id)
        wanted = [(chain, _wanted(history, chain, number)) for chain in history.chains]
        if not settle(now, wanted):
            raise Refused(f"Memory is as it was at revision {number} already.")
        return now.number


def _wanted(history: History, chain: Chain, number: int) -> Line | None:
    """Return the version of a line to be visible."""
    shown = chain.owner.since
    if shown is not None and shown <= number:
        return chain.at(number)
    if chain.owner.kind != Observation.Kind.OBSERVATION:
        return None
    if chain.visible is not None:
        return chain.visible
    hidden = history.hidden_by(chain)
    return chain.tip if hidden is not None and hidden.cause in UNSEEN else None
