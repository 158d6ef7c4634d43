"""Write a line of one's own into memory."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.models import Line
from memory.services import note as service

from .choose import add_author, author_of, in_a_sentence, memory_of

HELP = "Write a note into memory; no reflection condenses it."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("memory", type=UUID, help="the id of a record or of a conversation")
    parser.add_argument("text", help="what to remember")
    parser.add_argument("--kind", choices=Line.Kind.values, default=Line.Kind.HIGH.value)
    add_author(parser)


def run(out: TextIO, *, memory: UUID, text: str, kind: str, author: str | None, reason: str) -> int:
    """Write the note, and say its revision and its id."""
    with in_a_sentence():
        record = memory_of(memory)
        new = service.note(
            record.pk,
            text,
            kind=kind,
            # A conversation of several: the note goes with it when it is erased.
            thread_id=memory if record.thread_id is None and record.pk != memory else None,
            author=author_of(author),
            reason=reason,
        )
    out.write(f"Revision {new.since}: line {new.pk} is noted.\n")
    return 0
