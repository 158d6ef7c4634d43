"""Fork a conversation."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from ..services import fork as service
from .choose import add_author, author_of, in_a_sentence

HELP = "Begin a conversation as a copy of another one up to a position, with its memory."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("thread", type=UUID, help="the conversation's id")
    parser.add_argument("position", type=int, help="the last message to copy; 0 for none")
    parser.add_argument("--title", default="", help="the new conversation's title")
    add_author(parser)


def run(
    out: TextIO, *, thread: UUID, position: int, title: str, author: str | None, reason: str
) -> int:
    """Fork, and write the new conversation's id."""
    with in_a_sentence():
        new = service.fork(thread, position, title=title, author=author_of(author), reason=reason)
    out.write(f"Forked “{new}” at position {position}: conversation {new.pk}.\n")
    return 0
