"""Show how memory changed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.models import Line, Revision
from memory.services import history as service

from .choose import in_a_sentence, memory_of
from .table import write_table

HELP = "Show the revisions of a memory, its lines at one of them, or what changed between two."
REVISIONS = {name: name for name in ("revision", "at", "cause", "author", "tokens", "reason")}
LINES = {name: name for name in ("line", "kind", "pin", "text")}


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("memory", type=UUID, help="the id of a record or of a conversation")
    parser.add_argument("--at", type=int, metavar="REVISION", help="the lines visible at it")
    parser.add_argument("--compare", type=int, nargs=2, metavar="REVISION")


def run(out: TextIO, *, memory: UUID, at: int | None, compare: list[int] | None) -> int:
    """Write the revisions, the latest first, or lines."""
    with in_a_sentence():
        record = memory_of(memory).pk
        if compare is not None:
            _differences(out, service.compare(record, *compare))
        elif at is not None:
            write_table(out, LINES, map(_line, service.lines_at(record, at)))
        else:
            write_table(out, REVISIONS, map(_revision, service.revisions(record)))
    return 0


def _differences(out: TextIO, found: service.Comparison) -> None:
    for sign, lines in (("-", found.removed), ("+", found.added)):
        out.writelines(f"{sign} {line.text}\n" for line in lines)
    out.writelines(f"- {old.text}\n+ {new.text}\n" for old, new in found.changed)
    out.write(f"{found.tokens:+,} tokens.\n")


def _line(line: Line) -> dict[str, object]:
    pin = "pinned" if line.pinned else ""
    return {"line": line.pk, "kind": line.kind, "pin": pin, "text": line.text}


def _revision(row: Revision) -> dict[str, object]:
    return {
        "revision": row.number,
        "at": f"{row.created_at:%Y-%m-%d %H:%M}",
        "cause": row.cause,
        "author": row.author or "",
        "tokens": row.tokens_after - row.tokens_before,
        "reason": row.reason,
    }
