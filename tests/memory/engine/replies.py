"""Write replies of the Observer, and read them."""

from __future__ import annotations

from datetime import UTC, datetime

from memory.engine.parsing import parse_observer
from memory.engine.values import LineKind, ObserverOutput

HIGH, MEDIUM, LOW = LineKind.HIGH, LineKind.MEDIUM, LineKind.LOW
DONE, PLAIN = LineKind.DONE, LineKind.PLAIN


def observed(reply: str, known: range = range(1, 10)) -> ObserverOutput:
    return parse_observer(reply, tz=UTC, known=known)


def block(*lines: str) -> str:
    return "\n".join(["<observations>", *lines, "</observations>"])


def at(hour: int, minute: int, *, day: int = 8, month: int = 5) -> datetime:
    return datetime(2023, month, day, hour, minute, tzinfo=UTC)


def told(*outputs: ObserverOutput | None) -> list[list[str] | None]:
    return [output and [line.text for line in output.lines] for output in outputs]
