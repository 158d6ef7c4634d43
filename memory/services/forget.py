"""Take lines out of sight. They stay in history, and can be shown again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from memory.models import Line, Revision

from .anew import anew
from .change import Refused, Stale, change, close, compare_all, line_of, lines_of
from .standing import tells_once
from .versions import Chain, History, history_of, settle

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@anew
def forget(
    line_ids: UUID | Sequence[UUID],
    *,
    author: User | None = None,
    reason: str = "",
    expected: int | None = None,
) -> int:
    """Take lines of one record out of sight in one revision; return its number.

    Their messages stay covered: what was forgotten does not come back raw. Raises Stale when
    one was changed or went out of sight meanwhile.
    """
    lines = lines_of(line_ids)
    owner = lines[0].observation
    with change(
        owner.record_id,
        Revision.Cause.FORGET,
        author=author,
        reason=reason,
        thread_id=owner.thread_id,
    ) as now:
        compare_all(lines, expected=expected)
        close(lines, now.number)
        return now.number


def unforget(line_id: UUID, *, author: User | None = None, reason: str = "") -> Line:
    """Show a forgotten line again, as it was last; return the copy that does.

    Raises Refused when it was not forgotten, but condensed, say.
    """
    return show_again(line_id, only=Revision.Cause.FORGET, author=author, reason=reason)


@anew
def show_again(
    line_id: UUID,
    *,
    only: Revision.Cause | None = None,
    author: User | None = None,
    reason: str = "",
) -> Line:
    """Show a line again, whatever took it out of sight; return the copy that does.

    Beside a reflection it is an addition, and the next reflection condenses it with the rest
    unless it is pinned. Raises Stale when it, or a later version, is visible, and Refused when
    something else than ``only`` took it away, or it condensed what is visible again itself.
    """
    line = line_of(line_id)
    owner = line.observation
    with change(
        owner.record_id,
        Revision.Cause.RESTORE,
        author=author,
        reason=reason,
        thread_id=owner.thread_id,
    ) as now:
        history = history_of(now.record.pk)
        chain = _chain(history, line)
        _hidden(history, chain, line, now.number, only)
        settle(now, [(chain, chain.tip)])
        tells_once(now, [chain])
        return Line.objects.get(replaces=chain.tip.pk, since=now.number)


def _chain(history: History, line: Line) -> Chain:
    for chain in history.chains:
        if any(version.pk == line.pk for version in chain.versions):
            return chain
    raise Refused("This line was never shown.")


def _hidden(
    history: History, chain: Chain, line: Line, number: int, only: Revision.Cause | None
) -> None:
    if chain.visible is not None:
        raise Stale("This line is visible.", yours=line.text, current=chain.visible)
    hidden = history.hidden_by(chain, number)
    if only is not None and (hidden is None or hidden.cause != only):
        raise Refused("This line was not forgotten: something else took its place.")
