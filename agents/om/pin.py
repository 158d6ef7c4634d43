"""Pin lines of memory, or let go of them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services import pin as service

from .choose import add_author, author_of, in_a_sentence

HELP = "Pin lines, so that every reflection leaves them standing; `om history` shows their ids."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("line", type=UUID, nargs="+", help="a line's id")
    parser.add_argument("--off", action="store_true", help="let reflections condense them again")
    add_author(parser)


def run(out: TextIO, *, line: list[UUID], off: bool, author: str | None, reason: str) -> int:
    """Pin or unpin the lines, in one revision, and write their new ids."""
    set_pin = service.unpin if off else service.pin
    with in_a_sentence():
        lines = set_pin(line, author=author_of(author), reason=reason)
    ids = ", ".join(str(new.pk) for new in lines)
    out.write(f"Revision {lines[0].since}: {'unpinned' if off else 'pinned'} {ids}.\n")
    return 0
