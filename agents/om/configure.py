"""Change the options of a memory."""

from __future__ import annotations

import json as jsons
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError

from memory.services.configure import configure

from .choose import add_author, author_of, in_a_sentence
from .outcome import thread_in

HELP = "Change options of a memory; they apply from the next step on."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("memory", type=UUID, help="the id of a conversation or of a record")
    parser.add_argument(
        "pairs",
        nargs="+",
        metavar="OPTION=VALUE",
        help="the value as JSON or as plain text; null lets the agent's hold again",
    )
    add_author(parser)


def run(out: TextIO, *, memory: UUID, pairs: Sequence[str], author: str | None, reason: str) -> int:
    """Change the options and write the revision."""
    changes = dict(map(_pair, pairs))
    with in_a_sentence():
        number = configure(thread_in(memory), changes, author=author_of(author), reason=reason)
    said = ", ".join(f"{name} = {jsons.dumps(value)}" for name, value in changes.items())
    out.write(f"Revision {number}: {said}.\n")
    return 0


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise CommandError(f'"{text}" is no option; write it like message_tokens=20000.')
    try:
        return name.strip(), jsons.loads(value)
    except ValueError:
        return name.strip(), value
