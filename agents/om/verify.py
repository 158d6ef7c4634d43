"""Recompute the invariants and name what violates them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError

from memory.models import MemoryRecord
from memory.verify import Report, Unknown, verify

from .table import write_json
from .turns import check_turns, running_turns, stored_turns

HELP = "Recompute every invariant of memory from the raw tables; exit 1 when one is violated."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("--record", type=UUID, metavar="ID", help="check this record only")
    parser.add_argument("--thread", type=UUID, metavar="ID", help="check this conversation only")
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(out: TextIO, *, record: UUID | None, thread: UUID | None, json: bool) -> int:
    """Write the report and return 1 when anything is violated, else 0."""
    report = check(record=record, thread=thread)
    if json:
        write_json(out, _document(report))
    else:
        for violation in report.violations:
            out.write(f"{violation.invariant}: {violation.sentence}\n")
        out.write(report.summary + "\n")
    return 0 if report.clean else 1


def check(*, record: UUID | None = None, thread: UUID | None = None) -> Report:
    """Return what is wrong with memory and with turns. Raises CommandError."""
    try:
        memory = verify(record=record, thread=thread, running=running_turns)
    except Unknown as unknown:
        raise CommandError(f"{unknown} `om list` and `om status` name those there are.") from None
    if record is not None and thread is None:
        thread = MemoryRecord.objects.values_list("thread", flat=True).get(pk=record)
        if thread is None:
            return memory
    turns = stored_turns(thread)
    checked = {**memory.checked, **({"turns": len(turns)} if turns else {})}
    return Report(checked, (*memory.violations, *check_turns(turns)))


def _document(report: Report) -> dict[str, Any]:
    found = [
        {"invariant": v.invariant, "sentence": v.sentence, "rows": v.rows}
        for v in report.violations
    ]
    return {"clean": report.clean, "checked": report.checked, "violations": found}
