"""Pin lines, so that every reflection leaves them standing, and let go of them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from memory.models import Line, Revision

from .anew import anew
from .change import Refused, change, close, compare_all, lines_of, succeed

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@anew
def pin(
    line_ids: UUID | Sequence[UUID],
    *,
    author: User | None = None,
    reason: str = "",
    expected: int | None = None,
) -> list[Line]:
    """Pin lines of one record in one revision; return their successors.

    A pinned line stays visible beside a reflection that condenses what it stood among. Raises
    Stale when one was changed meanwhile, Refused when one is pinned already.
    """
    return _set(line_ids, True, author=author, reason=reason, expected=expected)


@anew
def unpin(
    line_ids: UUID | Sequence[UUID],
    *,
    author: User | None = None,
    reason: str = "",
    expected: int | None = None,
) -> list[Line]:
    """Let the next reflection condense pinned lines again; return their successors.

    Raises Stale and Refused as pin does.
    """
    return _set(line_ids, False, author=author, reason=reason, expected=expected)


def _set(
    line_ids: UUID | Sequence[UUID],
    pinned: bool,
    *,
    author: User | None,
    reason: str,
    expected: int | None,
) -> list[Line]:
    lines = lines_of(line_ids)
    owner = lines[0].observation
    with change(
        owner.record_id, Revision.Cause.PIN, author=author, reason=reason, thread_id=owner.thread_id
    ) as now:
        compare_all(lines, expected=expected)
        for line in lines:
            if line.pinned is pinned:
                raise Refused("This line is pinned already." if pinned else "It is not pinned.")
        close(lines, now.number)
        successors = [succeed(line, now.number, pinned=pinned) for line in lines]
        return Line.objects.bulk_create(successors)
