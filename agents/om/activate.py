"""Show what is buffered."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services.operate import activate_now

from .outcome import add_memory, run_on

HELP = "Show all that is buffered; no model is asked."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)


def run(out: TextIO, *, memory: UUID, json: bool) -> int:
    """Activate, and write what was done."""
    return run_on(out, memory, activate_now, json=json)
