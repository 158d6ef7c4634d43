"""Observe ahead of time."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services.operate import buffer_now

from .outcome import add_memory, run_on

HELP = "Observe ahead of time all that can be covered; nothing of it is shown yet."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)


def run(out: TextIO, *, memory: UUID, json: bool) -> int:
    """Buffer, and write what was done."""
    return run_on(out, memory, buffer_now, json=json)
