"""Change what a line says."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from memory.models import Line, Revision
from memory.tokens import count_line

from .anew import anew
from .change import Refused, change, checked_kind, checked_text, close, compare, line_of, succeed

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@anew
def edit(
    line_id: UUID,
    text: str,
    *,
    kind: str | None = None,
    author: User | None = None,
    reason: str = "",
    expected: int | None = None,
) -> Line:
    """Let a successor with other text stand in a line's place; return it.

    It keeps the line's observation, order, time, sources and pin. ``expected`` is the revision
    the caller saw the line at. Raises Stale with both texts when the line was changed or went
    out of sight since, Refused when the text is empty, too long or what it says already.
    """
    line = line_of(line_id)
    wanted, wanted_kind = checked_text(text), checked_kind(kind or line.kind)
    owner = line.observation
    with change(
        owner.record_id,
        Revision.Cause.EDIT,
        author=author,
        reason=reason,
        thread_id=owner.thread_id,
    ) as now:
        compare(line, yours=wanted, expected=expected)
        if (wanted, wanted_kind) == (line.text, line.kind):
            raise Refused("The line says this already.")
        close([line], now.number)
        tokens = count_line(wanted_kind, wanted, line.said_at)
        successor = succeed(line, now.number, text=wanted, kind=wanted_kind, tokens=tokens)
        successor.save(force_insert=True)
    return successor
