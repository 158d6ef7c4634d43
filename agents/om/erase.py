"""Destroy what is stored."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError

from memory.services.erase import Erased

from ..services import erase as service
from .choose import add_author, author_of, in_a_sentence, user_of
from .target import resource_of

NAMES = ("messages", "line", "thread", "resource", "person")
HELP = "Destroy messages, a line, a conversation, a resource or what a person said, everywhere."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--messages", type=UUID, metavar="THREAD", help="messages, see --range")
    what.add_argument("--line", type=UUID, metavar="ID", help="a line and what was made from it")
    what.add_argument("--thread", type=UUID, metavar="ID", help="a whole conversation")
    what.add_argument("--resource", metavar="KEY", help="a resource with all it has")
    what.add_argument("--person", metavar="NAME", help="what a user said")
    parser.add_argument("--range", type=int, nargs=2, default=(), metavar="POSITION")
    parser.add_argument("--spare-forks", action="store_true", help="leave copies in forks")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_author(parser)


def run(out: TextIO, *, yes: bool, ask: Callable[[str], str] = input, **chosen: Any) -> int:
    """Erase after a typed confirmation, and write what went."""
    kind = next(name for name in NAMES if chosen[name] is not None)
    name = str(chosen[kind])
    if not yes and ask(f"This cannot be undone. Type {name} to go on: ") != name:
        raise CommandError("Nothing was erased.")
    with in_a_sentence():
        report = _erase(kind, chosen)
    counted = ", ".join(f"{count:,} {name}" for name, count in report.counts.items() if count)
    out.write(f"Erased {counted or 'nothing: there was nothing left'}.\n")
    return 0


def _erase(kind: str, chosen: dict[str, Any]) -> Erased:
    by = {"author": author_of(chosen["author"]), "reason": chosen["reason"]}
    copies = not chosen["spare_forks"]
    if kind == "line":
        return service.erase_line(chosen["line"], **by)
    if kind == "thread":
        return service.erase_thread(chosen["thread"], copies=copies, **by)
    if kind == "messages":
        return service.erase_messages(chosen["messages"], *chosen["range"], copies=copies, **by)
    if kind == "person":
        return service.erase_person(user_of(chosen["person"]), **by)
    return service.erase_resource(resource_of(chosen["resource"]))
