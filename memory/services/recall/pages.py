"""Find the messages of a page of one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memory.engine.recall import Asked, Window, ends, window
from memory.engine.recalled import Page, Said
from memory.models import Message, Thread
from memory.models.thread import MessageQuerySet

from .reach import Reach
from .rows import said, visible

SCANNED = 500
"""Messages that one recall looks through for parts of a kind or a tool."""

BATCH = 50


@dataclass(frozen=True)
class Found:
    """Hold the messages of a page as they were found, in the window's order.

    ``more`` tells whether others follow; ``stopped`` is the position the search was given up at.
    """

    messages: tuple[Said, ...] = ()
    more: bool = False
    stopped: int | None = None


def page_of(reach: Reach, thread: Thread, asked: Asked, title: str = "") -> Page:
    """Return the page asked for, its messages in order, with what lies on both sides of it."""
    place = window(asked, thread.last_position)
    found = _found(reach, thread, asked, place)
    behind = place.skip > 0 or _is_any_behind(thread, asked)
    before, after = (found.more, behind) if place.backwards else (behind, found.more)
    in_order = found.messages[::-1] if place.backwards else found.messages
    notes = _notes(asked, found, place)
    return Page(in_order, title, tuple(notes), has_before=before, has_after=after)


def _found(reach: Reach, thread: Thread, asked: Asked, place: Window) -> Found:
    rows = visible(Message.objects.within(thread.pk, place.low, place.high))
    rows = rows.order_by("-position") if place.backwards else rows
    if asked.is_filtered:
        return _filtered(rows, place, lambda row: said(row, asked, reach.zone))
    taken = list(rows[place.skip : place.skip + place.take + 1])
    shown = tuple(said(row, asked, reach.zone) for row in taken[: place.take])
    return Found(shown, more=len(taken) > place.take)


def _filtered(rows: MessageQuerySet, place: Window, read: Callable[[Message], Said]) -> Found:
    """Take the page from those messages alone that have a part asked for."""
    skipped, last = 0, 0
    taken: list[Said] = []
    for number, row in enumerate(_in_batches(rows, backwards=place.backwards)):
        if number == SCANNED:
            return Found(tuple(taken), more=True, stopped=last)
        last = row.position
        one = read(row)
        if not one.parts:
            continue
        if skipped < place.skip:
            skipped += 1
        elif len(taken) == place.take:
            return Found(tuple(taken), more=True)
        else:
            taken.append(one)
    return Found(tuple(taken))


def _in_batches(rows: MessageQuerySet, *, backwards: bool) -> Iterator[Message]:
    left = rows
    while batch := list(left[:BATCH]):
        yield from batch
        last = batch[-1].position
        left = rows.filter(position__lt=last) if backwards else rows.filter(position__gt=last)


def _is_any_behind(thread: Thread, asked: Asked) -> bool:
    """Tell whether the range holds messages on the cursor's side of the page."""
    if asked.cursor is None:
        return False
    low, high = ends(asked, thread.last_position)
    low, high = max(low, 1), min(high, thread.last_position)
    if asked.page < 0:
        low = max(low, asked.cursor)
    else:
        high = min(high, asked.cursor)
    return visible(Message.objects.within(thread.pk, low, high)).exists()


def _notes(asked: Asked, found: Found, place: Window) -> Iterator[str]:
    if found.stopped is not None:
        page = -1 if place.backwards else 1
        yield (
            f"Only {SCANNED} messages were looked through, to position {found.stopped}. "
            f"cursor={found.stopped} with page={page} looks on."
        )
    elif not found.messages and asked.is_filtered:
        yield "(No part of these messages is of that part_kind and tool.)"
    elif not found.messages:
        yield "(There is nothing to show on this page.)"
