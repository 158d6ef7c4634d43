"""Say what of a shared record is one conversation's, with what it inherited where it was forked.

A fork in a shared memory is covered by what was made of its parent's messages: it has one row
without a line that says so. Apart from the others it needs copies of its parent's rows instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from uuid import UUID

from memory.models import Observation, Thread

from .carry import Selection, Whole

Parents = Mapping[UUID, UUID | None]


def parents_in(resource_id: int) -> Parents:
    """Return what each thread of a resource was forked from, if anything."""
    return dict(Thread.objects.filter(resource=resource_id).values_list("pk", "parent"))


def share_of(whole: Whole, thread_id: UUID, parents: Parents) -> Selection:
    """Return what goes along with a thread that leaves a shared record."""
    rows = {row.pk for row in telling(whole, thread_id, parents)}
    return Selection(
        whole,
        covers=lambda row: row.pk in rows,
        notes=lambda row: row.thread_id in (None, thread_id),
    )


def as_own(selection: Selection, thread_id: UUID) -> dict[UUID, UUID]:
    """Return the thread that each thread of a share is to be: that one."""
    rows = (row for row in selection.rows.values() if row.pk in selection.kept)
    return {row.thread_id: thread_id for row in rows if row.thread_id is not None}


def telling(
    whole: Whole, thread_id: UUID | None, parents: Parents, through: float = inf
) -> Iterator[Observation]:
    """Yield the rows that tell of a thread's messages up to a position, inherited ones first."""
    for row in whole.covering.get(thread_id, ()) if thread_id is not None else ():
        end = row.last_position or 0
        inherits = row.cycle_id is None and row.pk not in whole.told
        above = parents.get(thread_id) if inherits and thread_id is not None else None
        inherited = list(telling(whole, above, parents, min(through, end)))
        if inherited and _reaches(inherited, row, through):
            yield from inherited
        elif end <= through:
            yield row


def _reaches(rows: Sequence[Observation], row: Observation, through: float) -> bool:
    """Tell whether rows cover what one does, as far as is asked: some may be erased."""
    first, last = row.first_position or 0, row.last_position or 0
    ends = max(each.last_position or 0 for each in rows)
    begins = min(each.first_position or 0 for each in rows) <= first
    return begins and (ends >= last or through < last)
