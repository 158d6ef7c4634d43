"""Bring a memory down to a size."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TextIO
from uuid import UUID

from memory.services import compact as service
from memory.services.look import look
from memory.services.operate import Gauges, Outcome

from .choose import in_a_sentence
from .outcome import add_memory, describe_gauges, run_on, thread_in

HELP = "Observe the oldest messages until few enough tokens are raw; then condense the lines."


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    add_memory(parser)
    parser.add_argument(
        "--to",
        type=int,
        metavar="TOKENS",
        help="how many may stay raw (default: as many as an activation keeps)",
    )


def run(out: TextIO, *, memory: UUID, to: int | None, json: bool) -> int:
    """Compact, telling after each round how far it is, and write what was done."""
    with in_a_sentence():
        target = to if to is not None else _floor(thread_in(memory))

    def tell(gauges: Gauges) -> None:
        if not json:
            out.write(describe_gauges(gauges) + "\n")
            out.flush()

    async def compact(thread_id: UUID) -> Outcome:
        return await service.compact(thread_id, target, progress=tell)

    return run_on(out, memory, compact, json=json)


def _floor(thread_id: UUID) -> int:
    view = look(thread_id)
    return 0 if view is None else view.options.thresholds().given(view.tokens).floor
