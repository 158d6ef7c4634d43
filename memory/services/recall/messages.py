"""Bring back messages of one thread: a page of them, or one part of one of them in full."""

from __future__ import annotations

from dataclasses import replace

from memory.engine.recall import Asked, Refused, check_place
from memory.engine.recalled import Numbered, Page, Said, one_line, write_page, write_part
from memory.models import Message, Thread
from memory.tokens import TOKENIZER

from .pages import page_of
from .reach import Reach
from .rows import said, visible

TITLE_TOKENS = 20


def messages(reach: Reach, asked: Asked) -> str:
    """Return a page of a thread's messages, or one part of one of them, as text."""
    thread = reach.thread_named(asked.thread)
    title = titled(thread, is_current=thread.pk == reach.id)
    if not thread.last_position:
        return f"{title}\n(There are no messages in this conversation yet.)"
    check_place(asked, thread.last_position)
    if asked.names_part:
        return _named_part(reach, thread, asked, title)
    page = page_of(reach, thread, asked, title)
    if asked.detail == "high" and page.messages:
        return _first_part(page)
    return write_page(page, TOKENIZER)


def titled(thread: Thread, *, is_current: bool) -> str:
    """Return the line that names a thread above its messages."""
    name = one_line(thread.title, TITLE_TOKENS, TOKENIZER) or "New conversation"
    return "Messages of this conversation." if is_current else f"Messages of “{name}”."


def _first_part(page: Page) -> str:
    message = page.messages[0]
    return _whole(page.title, message, message.parts[0], page.notes, is_last=not page.has_after)


def _named_part(reach: Reach, thread: Thread, asked: Asked, title: str) -> str:
    position = next((n for n in (asked.cursor, asked.first, asked.last) if n is not None), None)
    if position is None:
        raise Refused("part and offset need a message: give its position as cursor.")
    number = 1 if asked.part is None else asked.part
    message = _at(reach, thread, asked, position)
    chosen = {one.number: one for one in message.parts}.get(number) if message else None
    if message and chosen:
        is_last = _next_page(reach, thread, asked, position).messages == ()
        return _whole(title, message, chosen, (), offset=asked.offset, is_last=is_last)
    if message and number <= message.count:
        raise _no_part(message, number)
    return _next_instead(reach, thread, asked, position, message)


def _at(reach: Reach, thread: Thread, asked: Asked, position: int) -> Said | None:
    row = visible(Message.objects.within(thread.pk, position, position)).first()
    return said(row, asked, reach.zone) if row else None


def _next_page(reach: Reach, thread: Thread, asked: Asked, position: int) -> Page:
    onward = replace(
        asked, first=None, last=None, cursor=position, page=1, part=None, offset=0, detail="high"
    )
    return page_of(reach, thread, onward)


def _next_instead(
    reach: Reach, thread: Thread, asked: Asked, position: int, message: Said | None
) -> str:
    """Return the first part of the next message, when this one has no such part."""
    page = _next_page(reach, thread, asked, position)
    if not page.messages:
        if message:
            raise _no_part(message, asked.part or 1)
        raise Refused(
            f"Message {position} has nothing to show, and nothing follows it. "
            "Give an earlier position as cursor."
        )
    had = f"has {_parts(message.count)}" if message else "has nothing to show"
    note = f"Message {position} {had}; this is the next one."
    return _first_part(
        replace(page, title=titled(thread, is_current=thread.pk == reach.id), notes=(note,))
    )


def _whole(
    title: str,
    message: Said,
    one: Numbered,
    notes: tuple[str, ...],
    *,
    is_last: bool,
    offset: int = 0,
) -> str:
    later = [other.number for other in message.parts if other.number > one.number]
    onward = "" if is_last else f'Next message: cursor={message.position}, page=1, detail="high".'
    if later:
        onward = f"Next part: cursor={message.position}, part={later[0]}."
    return write_part(message, one, offset, TOKENIZER, title=title, notes=notes, onward=onward)


def _no_part(message: Said, number: int) -> Refused:
    if not message.parts:
        return Refused(
            f"No part of message {message.position} is of that part_kind and tool. "
            "Leave part_kind and tool out."
        )
    known = ", ".join(str(one.number) for one in message.parts)
    return Refused(
        f"Message {message.position} has no part {number}. The parts there are: {known[:200]}."
    )


def _parts(count: int) -> str:
    return "one part" if count == 1 else f"{count} parts"
