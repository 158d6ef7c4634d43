"""Condense at once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services.operate import Outcome, reflect_now

from .outcome import add_memory, run_on

HELP = "Condense all visible lines but notes and pins, whatever their size."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)
    parser.add_argument("--focus", default="", metavar="TEXT", help="what to mind in doing so")


def run(out: TextIO, *, memory: UUID, focus: str, json: bool) -> int:
    """Reflect, and write what was done."""

    async def reflect(thread_id: UUID) -> Outcome:
        return await reflect_now(thread_id, focus=focus)

    return run_on(out, memory, reflect, json=json)
