"""Take in a bundle that was exported."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError

from memory.bundle import BadBundle, Report, load, read
from memory.bundle.load import OUTCOMES

from ..bundle import TABLES, running_turns
from .table import write_table

HELP = "Store a bundle: what is new is created, what is there already is skipped."
COLUMNS = {"table": "rows", **{outcome: outcome for outcome in OUTCOMES}}


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("file", type=Path, help="what `om export` wrote")
    parser.add_argument("--dry-run", action="store_true", help="store nothing, say what would be")


def run(out: TextIO, *, file: Path, dry_run: bool) -> int:
    """Write what was stored, or would be; return 1 when anything is in the way."""
    try:
        with file.open(encoding="utf-8") as lines:
            report = load(read(lines, TABLES), dry_run=dry_run, running=running_turns)
    except (BadBundle, OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {error}") from None
    write_table(out, COLUMNS, _rows(report))
    _explain(out, report)
    return 0 if report.sound else 1


def _rows(report: Report) -> list[dict[str, Any]]:
    return [
        {"table": name, **{outcome: counted[outcome] for outcome in OUTCOMES}}
        for name, counted in report.counts.items()
        if sum(counted.values())
    ]


def _explain(out: TextIO, report: Report) -> None:
    for each in report.conflicts:
        out.write(f"Conflict: {each.table} {each.key} differs in {', '.join(each.differs)}.\n")
    for sentence in (*report.problems, *report.notes):
        out.write(f"{sentence}\n")
    if report.stored:
        out.write(f"Stored {report.resource}.\n")
    elif report.sound:
        out.write("Nothing was stored: this was a dry run.\n")
    else:
        out.write("Nothing was stored.\n")
