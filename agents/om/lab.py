"""Run scenarios of the lab without a page."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import TextIO

from django.core.management.base import CommandError

from ..lab.models import Entry, Lab
from ..lab.run import ask, run_lab
from ..lab.scenario import Scenario, ScenarioError, read, written
from ..lab.stage import open_lab, preset, presets, wipe
from .choose import in_a_sentence
from .table import write_json

HELP = "Run a scenario with several people and say whether memory kept apart what it must."
SIGNS = {"passed": "PASS", "failed": "FAIL", "done": "done", "skipped": "left out"}


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("verb", choices=("run", "list", "wipe"), help="what to do")
    parser.add_argument("file", nargs="*", help="scenario files, or names of bundled ones")
    parser.add_argument("--keep", action="store_true", help="leave the lab for the page to show")
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run(out: TextIO, *, verb: str, file: list[str], keep: bool, json: bool) -> int:
    """Run scenarios and return 0, or 1 when anything of them failed. Raises CommandError."""
    if verb == "list":
        return _list(out)
    if verb == "wipe":
        return _wipe(out)
    if not file:
        raise CommandError("Name a scenario file, or one of `om lab list`.")
    scenarios = [(name, *_scenario(name)) for name in file]
    ended = [_run(out, text, scenario, keep=keep, quiet=json) for _, text, scenario in scenarios]
    if json:
        write_json(out, {"scenarios": ended})
    return int(any(each["failed"] for each in ended))


def _list(out: TextIO) -> int:
    for name, scenario in presets():
        out.write(f"{name}: {scenario.head.name}\n")
    return 0


def _wipe(out: TextIO) -> int:
    labs = list(Lab.objects.order_by("created_at"))
    for lab in labs:
        with in_a_sentence():
            wipe(lab)
    out.write(f"Wiped {len(labs)} lab{'' if len(labs) == 1 else 's'}.\n")
    return 0


def _scenario(name: str) -> tuple[str, Scenario]:
    bundled = preset(name)
    if bundled is not None:
        return bundled
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from None
    try:
        return text, read(text)
    except ScenarioError as error:
        raise CommandError(f"{name} is no scenario.\n{error}") from None


def _run(
    out: TextIO, text: str, scenario: Scenario, *, keep: bool, quiet: bool
) -> dict[str, object]:
    try:
        lab = open_lab(scenario, text)
    except ScenarioError as error:
        raise CommandError(str(error)) from None
    ask(lab, scenario.steps)
    failed = asyncio.run(run_lab(lab.pk))
    entries = list(lab.entries.order_by("pk"))
    if not quiet:
        _write(out, lab, entries, failed)
    if not keep:
        with in_a_sentence():
            wipe(lab)
    steps = [{"step": each.step, "state": each.state, "said": each.text} for each in entries]
    return {"name": lab.name, "failed": failed, "steps": steps}


def _write(out: TextIO, lab: Lab, entries: list[Entry], failed: int) -> None:
    out.write(f"{lab.name}\n")
    for entry in entries:
        step = written(entry.step).strip().replace("\n", " ")
        out.write(f"  {SIGNS[entry.state]:8}  {' '.join(step.split())} · {entry.text}\n")
    checked = sum(entry.state == Entry.State.PASSED for entry in entries)
    out.write(f"{'FAILED' if failed else 'Passed'}: {checked} checks hold, {failed} failed.\n")
