"""Bring all work on a memory to an end."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services.compact import finalize

from .outcome import add_memory, run_on

HELP = "Wait for what is under way, show what is buffered, observe and reflect what is due."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)


def run(out: TextIO, *, memory: UUID, json: bool) -> int:
    """Finalize, and write what was done."""
    return run_on(out, memory, finalize, json=json)
