"""Take lines of memory out of sight, or show them again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from django.core.management.base import CommandError

from memory.services import forget as service

from .choose import add_author, author_of, in_a_sentence

HELP = "Take lines out of sight; they stay in history. `om erase` destroys them."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("line", type=UUID, nargs="+", help="a line's id")
    parser.add_argument("--undo", action="store_true", help="show one forgotten line again")
    add_author(parser)


def run(out: TextIO, *, line: list[UUID], undo: bool, author: str | None, reason: str) -> int:
    """Forget the lines, in one revision, or show one again."""
    if undo and len(line) != 1:
        raise CommandError("With --undo, name one line.")
    by = author_of(author)
    with in_a_sentence():
        if undo:
            shown = service.unforget(line[0], author=by, reason=reason)
            out.write(f"Revision {shown.since}: line {shown.pk} is visible again.\n")
        else:
            number = service.forget(line, author=by, reason=reason)
            out.write(f"Revision {number}: forgot {len(line)} of the lines.\n")
    return 0
