"""Clear memory."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.models import Thread
from memory.services import clear as service

from .choose import add_author, author_of, in_a_sentence, memory_of

HELP = "Take all of a memory out of sight; `om restore` brings it back."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument(
        "memory", type=UUID, help="the id of a record, or of a conversation for its part only"
    )
    add_author(parser)


def run(out: TextIO, *, memory: UUID, author: str | None, reason: str) -> int:
    """Clear, and write what went out of sight."""
    with in_a_sentence():
        record = memory_of(memory)
        thread = Thread.objects.filter(pk=memory).values_list("pk", flat=True).first()
        done = service.clear(record.pk, thread_id=thread, author=author_of(author), reason=reason)
    left = f" {done.left} rest on other conversations too and stay." if done.left else ""
    out.write(
        f"Revision {done.revision}: cleared {done.lines} lines, "
        f"discarded {done.chunks} chunks.{left}\n"
    )
    return 0
