"""Bring conversations and their memory over from Mastra."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import TextIO

from django.core.management.base import CommandError

from agents.models import AgentProfile
from memory import mastra

HELP = (
    "Import Mastra's threads, messages and observational memory from a libsql file or PostgreSQL."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("source", help="a file, or postgresql://USER@HOST/NAME[?schema=NAME]")
    parser.add_argument("--agent", required=True, help="the agent that goes on with the threads")
    parser.add_argument("--dry-run", action="store_true", help="store nothing, only count")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(out: TextIO, *, source: str, agent: str, dry_run: bool, json: bool) -> int:
    """Write what was stored, or would be."""
    if not AgentProfile.objects.filter(slug=agent).exists():
        known = ", ".join(AgentProfile.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(f"There is no agent “{agent}”. Known: {known or 'none yet'}.")
    try:
        report = mastra.load(mastra.read(source), agent=agent, dry_run=dry_run)
    except mastra.BadSource as error:
        raise CommandError(str(error)) from error
    out.write(_as_json(report) if json else _as_text(report))
    return 0


def _as_json(report: mastra.Report) -> str:
    found = {"stored": report.stored, "counts": dict(report.counts), "notes": report.notes}
    return json.dumps(found) + "\n"


def _as_text(report: mastra.Report) -> str:
    did = "Stored" if report.stored else "Would store"
    lines = [f"{did} {number:,} {what}." for what, number in report.counts.items() if number]
    return "\n".join([*lines, *report.notes, ""])
