"""Change what a line of memory says."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.models import Line
from memory.services import edit as service

from .choose import add_author, author_of, in_a_sentence

HELP = "Let a line of memory say something else; `om history` shows the lines' ids."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("line", type=UUID, help="the line's id")
    parser.add_argument("text", help="what it says from now on")
    parser.add_argument("--kind", choices=Line.Kind.values, help="its kind from now on")
    parser.add_argument(
        "--expected", type=int, metavar="REVISION", help="fail if it changed after this revision"
    )
    add_author(parser)


def run(
    out: TextIO,
    *,
    line: UUID,
    text: str,
    kind: str | None,
    expected: int | None,
    author: str | None,
    reason: str,
) -> int:
    """Edit the line and write the revision and the new id."""
    with in_a_sentence():
        new = service.edit(
            line, text, kind=kind, author=author_of(author), reason=reason, expected=expected
        )
    out.write(f"Revision {new.since}: line {new.pk} says it now.\n")
    return 0
