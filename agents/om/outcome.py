"""Run what is asked for on a memory, and tell what it did."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError

from memory.models import Thread
from memory.services.operate import Gauges, Outcome

from .choose import in_a_sentence, memory_of
from .table import write_json

Operation = Callable[[UUID], Awaitable[Outcome]]


def add_memory(parser: ArgumentParser) -> None:
    """Name the options that every such command takes."""
    parser.add_argument("memory", type=UUID, help="the id of a conversation or of a record")
    parser.add_argument("--json", action="store_true", help="write one JSON document")


def run_on(out: TextIO, memory: UUID, operation: Operation, *, json: bool) -> int:
    """Run an operation and write what it did; return 1 when it failed. Raises CommandError."""
    with in_a_sentence():
        thread = thread_in(memory)
        outcome = asyncio.run(_awaited(operation(thread)))
    if json:
        write_json(out, {"thread": thread, "well": outcome.well, **asdict(outcome)})
    else:
        out.write(describe(outcome) + "\n")
    return 0 if outcome.well else 1


async def _awaited(work: Awaitable[Outcome]) -> Outcome:
    return await work


def thread_in(memory: UUID) -> UUID:
    """Return a conversation by its id, or one whose memory a record is. Raises CommandError."""
    if Thread.objects.filter(pk=memory).exists():
        return memory
    thread = memory_of(memory).remembering().first()
    if thread is None:
        raise CommandError(f"The memory {memory} has no conversation yet.")
    return thread.pk


def describe(outcome: Outcome) -> str:
    """Return what was done, in words."""
    if not outcome.changed:
        return outcome.why
    after = outcome.after
    facts: list[Any] = [
        _counted(outcome.done, "cycle") + " done" if outcome.done else "",
        f"{outcome.failed} failed" if outcome.failed else "",
        _counted(outcome.activated, "chunk") + " shown" if outcome.activated else "",
        f"{_change(outcome.before.raw, after.raw)} raw tokens",
        f"{_change(outcome.before.lines, after.lines)} tokens of lines",
    ]
    why = f" {outcome.why}" if outcome.why else ""
    return f"Revision {after.revision}: {', '.join(filter(None, facts))}.{why}"


def describe_gauges(gauges: Gauges) -> str:
    """Return how far an operation is, in words."""
    return f"{gauges.raw:,} raw tokens, {gauges.lines:,} tokens of lines"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _change(before: int, after: int) -> str:
    return f"{after:,}" if before == after else f"{before:,} → {after:,}"
