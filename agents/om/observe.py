"""Observe at once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services.operate import observe_now

from .outcome import add_memory, run_on

HELP = "Show what is buffered, and observe and show all else that can be covered."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)


def run(out: TextIO, *, memory: UUID, json: bool) -> int:
    """Observe, and write what was done."""
    return run_on(out, memory, observe_now, json=json)
