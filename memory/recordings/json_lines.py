"""Read our own format: one JSON object a line, each one message."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from json import JSONDecodeError
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart, ToolReturnPart

from memory.recordings.rows import (
    Row,
    Wrong,
    as_object,
    decoded,
    list_of,
    name_of,
    only,
    parsed,
    present,
    request,
    response,
    text_of,
)
from memory.recordings.values import Recorded, Recording, RecordingError

HEADER = frozenset({"title", "time_zone"})
MESSAGES = {
    "user": frozenset({"at", "id", "user"}),
    "assistant": frozenset({"at", "id", "assistant", "calls"}),
    "results": frozenset({"at", "id", "results"}),
}
EXAMPLE_TIME = "2026-01-08T19:12:00+01:00"


def read_json_lines(path: Path, file: BinaryIO) -> Recording:
    """Return the one conversation of a file, read line by line.

    Raises RecordingError with the number of the line that is wrong.
    """
    tape, number = _Tape(), 1
    try:
        for number, raw in enumerate(file, 1):
            if line := decoded(raw).strip():
                tape.take(number, line)
        tape.end()
    except Wrong as error:
        raise RecordingError(path, number, str(error)) from error
    except JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at column {error.colno}"
        raise RecordingError(path, number, problem) from error
    key = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return Recording(key, tape.title or key, tape.time_zone, tuple(tape.messages))


class _Tape:
    """Collect the messages of a file, and know what the next line has to fit."""

    def __init__(self) -> None:
        self.title = ""
        self.time_zone = "UTC"
        self.messages: list[Recorded] = []
        self._started = False
        self._ids: dict[str, int] = {}
        self._calls = _Calls()

    def take(self, number: int, line: str) -> None:
        """Add one line: a message or, when it is the first, the title and time zone."""
        row = as_object(parsed(line), "the line")
        first, self._started = not self._started, True
        if HEADER & row.keys() and not MESSAGES.keys() & row.keys():
            self._head(row, first)
        else:
            self._add(row, number)

    def end(self) -> None:
        """Refuse a file without messages, or with a call that nothing answers."""
        if not self.messages:
            raise Wrong("the file ends without a single message")
        self._calls.refuse_open("the end of the file")

    def _head(self, row: Row, first: bool) -> None:
        if not first:
            raise Wrong('"title" and "time_zone" belong in the first line')
        only(row, HEADER, "the first line")
        self.title = text_of(row, "title") if "title" in row else ""
        self.time_zone = _zone(text_of(row, "time_zone")) if "time_zone" in row else "UTC"

    def _add(self, row: Row, number: int) -> None:
        kind = _kind(row)
        at = _moment(text_of(row, "at"))
        self._refuse_backwards(at)
        source_id = self._source_id(row, number)
        if kind == "results":
            message: ModelMessage = _results(row, at, self._calls)
        else:
            self._calls.refuse_open(f'this message with "{kind}"')
            user = kind == "user"
            message = _user(row, at) if user else _assistant(row, at, self._calls, number)
        self.messages.append(Recorded(at, message, source_id))

    def _refuse_backwards(self, at: datetime) -> None:
        if self.messages and at < self.messages[-1].at:
            last = self.messages[-1].at.isoformat()
            raise Wrong(
                f"the time goes back, from {last} to {at.isoformat()}; "
                "expected messages in the order they were said"
            )

    def _source_id(self, row: Row, number: int) -> str:
        source_id = name_of(row, "id") if "id" in row else str(number)
        if source_id in self._ids:
            raise Wrong(f'the id "{source_id}" is that of line {self._ids[source_id]} already')
        self._ids[source_id] = number
        return source_id


class _Calls:
    """Hold the tool calls made so far, and which of them still wait for a result."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._open: dict[str, str] = {}

    def open(self, call_id: str, tool: str, number: int) -> None:
        """Note a call; its id must be new."""
        if call_id in self._lines:
            raise Wrong(f'the call id "{call_id}" was used in line {self._lines[call_id]} already')
        self._lines[call_id], self._open[call_id] = number, tool

    def close(self, call_id: str, tool: str) -> None:
        """Note a result; its call must be waiting, and be of the same tool."""
        if call_id not in self._open:
            waiting = ", ".join(self._open) or "no call"
            raise Wrong(f'no open call has the id "{call_id}"; waiting for a result: {waiting}')
        called = self._open.pop(call_id)
        if called != tool:
            raise Wrong(f'the call "{call_id}" is of the tool {called}, its result of {tool}')

    def refuse_open(self, event: str) -> None:
        """Refuse what comes before every call has its result."""
        for call_id, tool in self._open.items():
            raise Wrong(
                f'the call "{call_id}" of {tool} in line {self._lines[call_id]} '
                f"has no result before {event}"
            )


def _user(row: Row, at: datetime) -> ModelRequest:
    return request(name_of(row, "user"), at)


def _assistant(row: Row, at: datetime, calls: _Calls, number: int) -> ModelMessage:
    text = text_of(row, "assistant")
    made = [_call(value, calls, number) for value in list_of(row, "calls", optional=True)]
    if not text.strip() and not made:
        raise Wrong('"assistant" is empty; expected some text, or "calls"')
    return response(text, made, at)


def _call(value: object, calls: _Calls, number: int) -> ToolCallPart:
    row = as_object(value, "a call")
    only(row, {"id", "tool", "args"}, "a call")
    call_id, tool = name_of(row, "id"), name_of(row, "tool")
    args = as_object(present(row, "args"), f'"args" of the call "{call_id}"')
    calls.open(call_id, tool, number)
    return ToolCallPart(tool, args, call_id)


def _results(row: Row, at: datetime, calls: _Calls) -> ModelRequest:
    rows = list_of(row, "results")
    if not rows:
        raise Wrong('"results" is an empty list; expected at least one result')
    return ModelRequest([_result(value, at, calls) for value in rows], timestamp=at)


def _result(value: object, at: datetime, calls: _Calls) -> ToolReturnPart:
    row = as_object(value, "a result")
    only(row, {"id", "tool", "content"}, "a result")
    call_id, tool = name_of(row, "id"), name_of(row, "tool")
    content = present(row, "content")
    calls.close(call_id, tool)
    return ToolReturnPart(tool, content, call_id, timestamp=at)


def _kind(row: Row) -> str:
    kinds = [kind for kind in MESSAGES if kind in row]
    if len(kinds) != 1:
        raise Wrong(
            f"it has {_listed(kinds) or 'none'} of {_listed(MESSAGES)}; expected exactly one"
        )
    only(row, MESSAGES[kinds[0]], f'a message with "{kinds[0]}"')
    return kinds[0]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Wrong(f'"at" is "{text[:40]}"; expected a time like {EXAMPLE_TIME}') from error
    if at.tzinfo is None:
        raise Wrong(f'"at" is {text}, without a time zone offset; expected {EXAMPLE_TIME}')
    try:
        at.astimezone(UTC)
    except OverflowError as error:
        raise Wrong(f'"at" is {text}, which is no time in UTC') from error
    return at


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (OSError, ValueError, LookupError) as error:
        raise Wrong(f'"time_zone" is "{name}"; expected a name like Europe/Berlin') from error
