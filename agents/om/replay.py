"""Feed a recorded conversation through the whole pipeline."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError

from memory.models import MemoryRecord, Thread
from memory.recordings import Recording

from ..services.replay import Progress, ReplayRefused, replay
from .progress import JsonLines, Log, Terminal
from .target import recording_of, thread_of

HELP = "Feed a recorded conversation through turns and memory; run again, it goes on."
INTERRUPTED_BY_USER = 130

Reporter = Terminal | Log | JsonLines


def add_arguments(parser: ArgumentParser) -> None:
    """Name the options."""
    parser.add_argument("file", type=Path, help="JSON lines, or the JSON of LoCoMo or LongMemEval")
    parser.add_argument("--conversation", metavar="KEY", help="which one, of a file with several")
    parser.add_argument("--resource", metavar="KEY", help="whose conversation it becomes")
    parser.add_argument("--thread", metavar="ID_OR_TITLE", help="an empty or a new conversation")
    parser.add_argument("--agent", metavar="SLUG", help="the agent it is with (default: the first)")
    parser.add_argument(
        "--thresholds", metavar="LIST", help="such as messages=3000,observations=4000"
    )
    parser.add_argument(
        "--speed",
        type=_speed,
        default=0,
        metavar="X",
        help="times as fast as recorded; no pause is longer than 2 s (default 0: no pause)",
    )
    parser.add_argument("--json", action="store_true", help="write progress as JSON lines")


def run(
    out: TextIO, *, file: Path, conversation: str | None, speed: float, json: bool, **target: Any
) -> int:
    """Replay and return 0, or 130 when interrupted. Raises CommandError."""
    recording, source = recording_of(file, conversation)
    target["name"] = target.pop("thread")
    thread = thread_of(source, recording.title, **target)
    reporter = _reporter(out, recording, json=json)
    _announce(out, thread, reporter)
    try:
        progress = asyncio.run(replay(thread.pk, recording, speed=speed, report=reporter))
    except KeyboardInterrupt:
        _stopped(out, thread, reporter)
        return INTERRUPTED_BY_USER
    except ReplayRefused as refused:
        raise CommandError(str(refused)) from refused
    _finished(out, thread, reporter, progress)
    return 0


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = -1
    if not 0 <= speed < float("inf"):
        raise ArgumentTypeError(f'"{text}" is no speed; write 0, or how many times as fast')
    return speed


def _reporter(out: TextIO, recording: Recording, *, json: bool) -> Reporter:
    if json:
        return JsonLines(out)
    return Terminal(out, recording.title) if out.isatty() else Log(out, recording.title)


def _announce(out: TextIO, thread: Thread, reporter: Reporter) -> None:
    if isinstance(reporter, JsonLines):
        reporter.write("begin", thread=thread.pk, resource=thread.resource.key)
    else:
        out.write(f"Replaying into “{thread}” of {thread.resource} (conversation {thread.pk}).\n")
        out.flush()


def _stopped(out: TextIO, thread: Thread, reporter: Reporter) -> None:
    thread.refresh_from_db()
    stored = thread.metadata["replay"]["stored"]
    if isinstance(reporter, JsonLines):
        reporter.write("stopped", thread=thread.pk, stored=stored)
        return
    reporter.end()
    out.write(f"Stopped after {stored:,} messages. Run the same command again to go on.\n")


def _finished(out: TextIO, thread: Thread, reporter: Reporter, progress: Progress) -> None:
    record = MemoryRecord.objects.filter(thread=thread, closed_at=None).first()
    revision = record.revision if record else 0
    if isinstance(reporter, JsonLines):
        facts = {"stored": progress.stored, "cycles": progress.cycles, "revision": revision}
        reporter.write("finished", thread=thread.pk, already=progress.already, **facts)
        return
    reporter.end()
    if progress.already:
        out.write(f"This recording was replayed already: all {progress.stored:,} messages.\n")
    else:
        out.write(
            f"Done: {progress.stored:,} messages, {progress.cycles:,} cycles, "
            f"memory at revision {revision}.\n"
        )
