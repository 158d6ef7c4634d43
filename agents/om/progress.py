"""Tell how far a replay is: on a terminal, in a log, or to a program."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TextIO

from ..services.replay import Progress

REDRAW_SECONDS = 0.1
LOG_SECONDS = 5.0
ERASE_LINE = "\r\033[K"

Clock = Callable[[], float]


class Terminal:
    """Rewrite one line."""

    def __init__(self, out: TextIO, name: str, *, clock: Clock = time.monotonic) -> None:
        self._out = out
        self._name = name
        self._clock = clock
        self._drawn_at = float("-inf")

    def __call__(self, progress: Progress) -> None:
        """Redraw, at most ten times a second."""
        if self._clock() - self._drawn_at < REDRAW_SECONDS and progress.stored < progress.total:
            return
        self._drawn_at = self._clock()
        self._out.write(ERASE_LINE + describe(self._name, progress))
        self._out.flush()

    def end(self) -> None:
        """Leave the line free for what is said next."""
        self._out.write(ERASE_LINE)


class Log:
    """Write a line now and then."""

    def __init__(self, out: TextIO, name: str, *, clock: Clock = time.monotonic) -> None:
        self._out = out
        self._name = name
        self._clock = clock
        self._said_at = clock()

    def __call__(self, progress: Progress) -> None:
        """Say how far it is, every five seconds."""
        if self._clock() - self._said_at >= LOG_SECONDS:
            self._said_at = self._clock()
            self._out.write(describe(self._name, progress) + "\n")
            self._out.flush()

    def end(self) -> None:
        """Do nothing: every line stands for itself."""


class JsonLines:
    """Write a JSON object a line, for every change."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, progress: Progress) -> None:
        """Write the progress, at once."""
        self.write("progress", **asdict(progress))

    def write(self, event: str, **fields: object) -> None:
        """Write one object."""
        self._out.write(json.dumps({"event": event, **fields}, default=str) + "\n")
        self._out.flush()

    def end(self) -> None:
        """Do nothing: every line stands for itself."""


def describe(name: str, progress: Progress) -> str:
    """Return how far a replay is, in words."""
    text = f"{name}: {progress.stored:,} of {progress.total:,} messages, {progress.cycles:,} cycles"
    return f"{text}, waiting for {progress.waiting_for}" if progress.waiting_for else text
