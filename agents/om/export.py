"""Write a resource with all its history into one file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import TextIO

from memory.bundle import write

from ..bundle import TABLES
from .target import resource_of

HELP = "Write a resource with all its conversations and memory as a bundle, one row a line."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("resource", help="its key, as `om list` shows it")
    parser.add_argument("--to", type=Path, metavar="FILE", help="a file instead of the output")


def run(out: TextIO, *, resource: str, to: Path | None) -> int:
    """Write the bundle, and say how many rows a file holds."""
    lines = write(resource_of(resource), TABLES)
    if to is None:
        for line in lines:
            out.write(line)
        return 0
    with to.open("w", encoding="utf-8", newline="") as file:
        rows = sum(1 for line in lines if file.write(line)) - 2
    out.write(f"Wrote {rows:,} rows of {resource} to {to}.\n")
    return 0
