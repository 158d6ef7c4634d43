"""Bring memory back to an earlier revision, or undo one."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services import history
from memory.services import restore as service

from .choose import add_author, author_of, in_a_sentence, memory_of

HELP = "Show again what was visible at a revision, with what was observed since; or undo one."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("memory", type=UUID, help="the id of a record or of a conversation")
    parser.add_argument("revision", type=int, help="its number, as `om history` shows it")
    parser.add_argument("--undo", action="store_true", help="undo this one change only")
    add_author(parser)


def run(
    out: TextIO, *, memory: UUID, revision: int, undo: bool, author: str | None, reason: str
) -> int:
    """Restore the revision, or undo it, and write the revision this makes."""
    change = history.undo if undo else service.restore
    with in_a_sentence():
        record = memory_of(memory)
        number = change(record.pk, revision, author=author_of(author), reason=reason)
    done = f"undid revision {revision}" if undo else f"restored revision {revision}"
    out.write(f"Revision {number}: {done}.\n")
    return 0
