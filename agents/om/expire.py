"""Remove what has been kept as long as the settings say."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO

from ..services import expire as service
from .table import write_json

HELP = "Remove what has been kept as long as the settings say; a server does so once a day."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("--dry-run", action="store_true", help="count, and remove nothing")
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(out: TextIO, *, dry_run: bool, json: bool) -> int:
    """Remove, or count, and write the report."""
    counts = service.expire(dry_run=dry_run)
    if json:
        write_json(out, {"dry_run": dry_run, "counts": counts})
        return 0
    counted = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    out.write(f"{'Would remove' if dry_run else 'Removed'} {counted or 'nothing'}.\n")
    return 0
