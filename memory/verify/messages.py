"""Check the messages of a thread: their positions, their contents, their pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from memory.messages import load, plain_text
from memory.models import Message, Observation
from memory.tokens import count_message

from .report import Violation
from .rows import Row

AT_ONCE = 500


@dataclass
class Scan:
    """Hold the positions and tokens of a thread's messages, in order, and what is wrong."""

    thread: Row
    positions: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def found(self, invariant: str, sentence: str, **rows: Any) -> None:
        """Note a violation of this thread."""
        rows = {"thread": self.thread["id"], **rows}
        self.violations.append(
            Violation(invariant, f"Thread {self.thread['id']}: {sentence}", rows)
        )


def scan(thread: Row, *, running_from: int | None = None) -> Scan:
    """Read a thread's messages once; ``running_from`` is where its running turn begins."""
    scanned = Scan(thread)
    pairs = _Pairs(scanned, _ends_of_ranges(thread["id"]))
    rows = Message.objects.filter(thread=thread["id"]).order_by("position").values()
    for row in rows.iterator(chunk_size=AT_ONCE):
        pairs.before(row["position"])
        scanned.positions.append(row["position"])
        scanned.tokens.append(row["tokens"])
        _check_position(scanned, row)
        if _check_content(scanned, row):
            pairs.take(row)
    pairs.end(running_from)
    return scanned


def _ends_of_ranges(thread_id: UUID) -> list[Row]:
    covering = Observation.objects.filter(thread=thread_id, kind=Observation.Kind.OBSERVATION)
    return list(covering.order_by("last_position").values("id", "last_position"))


def _check_position(scanned: Scan, row: Row) -> None:
    position, last = row["position"], scanned.thread["last_position"]
    if position < 1:
        scanned.found("messages.position", f"a message has position {position}.", message=position)
    if position > last:
        sentence = f"message {position} lies beyond the thread's last position {last}."
        scanned.found("messages.position", sentence, message=position)
    if scanned.positions[-2:-1] == [position]:
        sentence = f"two messages have position {position}."
        scanned.found("messages.position", sentence, message=position)


def _check_content(scanned: Scan, row: Row) -> bool:
    """Compare what is stored about a message with the message; return whether it can be read."""
    position = row["position"]
    try:
        message = load(row["payload"])
    except ValidationError:
        sentence = f"message {position} cannot be read."
        scanned.found("messages.payload", sentence, message=position)
        return False
    if message.kind != row["kind"]:
        sentence = f"message {position} is stored as a {row['kind']} and is a {message.kind}."
        scanned.found("messages.kind", sentence, message=position)
    if (tokens := count_message(message, row["model"])) != row["tokens"]:
        sentence = f"message {position} has {tokens} tokens, and {row['tokens']} are stored."
        scanned.found("messages.tokens", sentence, message=position)
    if plain_text(message) != row["text"]:
        sentence = f"the searchable text of message {position} is not the message's."
        scanned.found("messages.text", sentence, message=position)
    return True


class _Pairs:
    """Follow which tool calls are open from message to message."""

    def __init__(self, scanned: Scan, ends: list[Row]) -> None:
        self._scanned = scanned
        self._ends = ends
        self._next_end = 0
        self._open: dict[str, list[int]] = defaultdict(list)

    def before(self, position: int) -> None:
        """Look at the ranges that end before a position."""
        while self._next_end < len(self._ends):
            end = self._ends[self._next_end]
            if end["last_position"] >= position:
                return
            self._check_cut(end)
            self._next_end += 1

    def take(self, row: Row) -> None:
        """Open the calls of a message and close those it answers."""
        for call_id in _ids(row, "tool-call"):
            self._open[call_id].append(row["position"])
        for call_id in _ids(row, "tool-return", "retry-prompt"):
            if self._open[call_id]:
                self._open[call_id].pop()
            else:
                sentence = f"message {row['position']} answers the call {call_id}, which is none."
                self._scanned.found("pairs.result", sentence, message=row["position"], call=call_id)

    def end(self, running_from: int | None) -> None:
        """Look at what is left; only calls of a running turn may be open."""
        for end in self._ends[self._next_end :]:
            self._check_cut(end)
        for call_id, position in self._opened():
            if running_from is None or position < running_from:
                sentence = f"the call {call_id} of message {position} has no result."
                self._scanned.found("pairs.call", sentence, message=position, call=call_id)

    def _check_cut(self, end: Row) -> None:
        for call_id, position in self._opened():
            sentence = (
                f"observation {end['id']} ends at {end['last_position']}, between "
                f"the call {call_id} of message {position} and its result."
            )
            self._scanned.found(
                "pairs.cut", sentence, observation=end["id"], message=position, call=call_id
            )

    def _opened(self) -> Iterator[tuple[str, int]]:
        for call_id, positions in self._open.items():
            for position in positions:
                yield call_id, position


def _ids(row: Row, *kinds: str) -> list[str]:
    # A retry prompt without a tool's name answers no call.
    return [
        part["tool_call_id"]
        for part in row["payload"]["parts"]
        if part["part_kind"] in kinds and part.get("tool_name")
    ]
