"""Read the JSON Lines that an export of conversations writes; what is wrong is told with its line.

A file is data from anywhere. It can name no file of this server, since the bytes of files are not
in an export, and it can say nothing that only the server says, such as a system prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
)

from memory.messages import attachments, load, safe_text
from memory.recordings import Recorded
from memory.stored import REFERENCES

from .export import FORMAT

MOST_MESSAGES = 2_000
LONGEST_TITLE = 200
GONE = "[A file that was attached here is not part of the export.]"


class BadExport(ValueError):
    """Say what is wrong with a file, and in which line; 0 for none."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"Line {line}: {problem}" if line else problem)
        self.line = line


@dataclass
class Conversation:
    """Hold one conversation of a file; ``lines`` is how many lines of memory stand there."""

    number: int
    title: str
    agent: str
    remembers: bool
    messages: list[Recorded] = field(default_factory=list)
    lines: int = 0
    position: int = 0
    waiting: set[str] = field(default_factory=set)


def read(file: Iterable[bytes]) -> list[Conversation]:
    """Return the conversations of a file, each with a message at least. Raises BadExport."""
    found: list[Conversation] = []
    count = 0
    for number, row in _rows(file):
        match row.get("type"):
            case "thread":
                found.append(_conversation(number, row))
            case "message" if found:
                _add(found[-1], number, row)
                count += 1
            case "line" if found:
                found[-1].lines += 1
            case "message" | "line":
                raise BadExport(number, 'the first line must be of type "thread".')
            case other:
                known = '"thread", "message" and "line"'
                raise BadExport(number, f"type {str(other)[:40]!r} is not known, only {known} are.")
        if count > MOST_MESSAGES:
            raise BadExport(number, f"a file can bring {MOST_MESSAGES:,} messages at most.")
    if not found:
        raise BadExport(0, "The file is empty.")
    for each in found:
        if not each.messages:
            raise BadExport(each.number, "this conversation has no message.")
    return found


def _rows(file: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, raw in enumerate(file, 1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            row = json.loads(text) if text else None
        except UnicodeDecodeError:
            raise BadExport(number, "this is no UTF-8 text.") from None
        except json.JSONDecodeError as error:
            said = f"this is no JSON: {error.msg} at column {error.colno}."
            raise BadExport(number, said) from None
        except (RecursionError, ValueError):
            raise BadExport(number, "this is no JSON that can be read.") from None
        if row is None:
            continue
        if not isinstance(row, dict):
            raise BadExport(number, "expected an object, like the export writes.")
        yield number, row


def _conversation(number: int, row: Mapping[str, Any]) -> Conversation:
    if row.get("format") != FORMAT:
        raise BadExport(number, f"format {row.get('format')!r} is not known, only {FORMAT} is.")
    title, agent, remembers = row.get("title", ""), row.get("agent", ""), row.get("remembers", True)
    if not (isinstance(title, str) and isinstance(agent, str) and isinstance(remembers, bool)):
        raise BadExport(number, '"title" and "agent" must be text, "remembers" true or false.')
    return Conversation(number, safe_text(title)[:LONGEST_TITLE], agent, remembers)


def _add(conversation: Conversation, number: int, row: Mapping[str, Any]) -> None:
    position = row.get("position")
    if type(position) is not int or position <= conversation.position:
        raise BadExport(number, '"position" must be a number above that of the message before.')
    conversation.position = position
    message = _message(number, row.get("message"))
    _refuse_unpaired(conversation.waiting, number, message)
    at = _time(number, row.get("created_at"))
    conversation.messages.append(Recorded(at, message, str(position)))


def _time(number: int, given: object) -> datetime:
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadExport(number, '"created_at" must be a time with an offset, of ISO 8601.')
    return at


def _message(number: int, payload: object) -> ModelMessage:
    try:
        message = load(_without_files(payload))
    except ValidationError as error:
        place = ".".join(str(step) for step in error.errors()[0]["loc"][1:])
        said = error.errors()[0]["msg"]
        raise BadExport(number, f'"message" cannot be read: {place}: {said}.'[:300]) from None
    except (TypeError, KeyError, IndexError, ValueError, AttributeError, RecursionError):
        raise BadExport(number, '"message" cannot be read.') from None
    if not message.parts:
        raise BadExport(number, "the message says nothing.")
    if attachments(message):
        raise BadExport(number, "the message brings a file, which an import does not take.")
    if any(isinstance(part, SystemPromptPart) for part in message.parts):
        raise BadExport(number, "a system prompt is no part of a conversation.")
    return message


def _without_files(payload: Any) -> dict[str, Any]:
    """Return a payload with a sentence in the place of each file it lists."""
    kept = {key: value for key, value in payload.items() if key != REFERENCES}
    for listed in payload.get(REFERENCES, ()):
        index, *way = listed["at"]
        if way:
            holder = kept["parts"][index]["content"]
            for step in way[:-1]:
                holder = holder[step]
            holder[way[-1]] = GONE
        elif kept["parts"][index]["part_kind"] == "file":
            kept["parts"][index] = {"part_kind": "text", "content": GONE}
        else:
            kept["parts"][index]["content"] = GONE
    return kept


def _refuse_unpaired(waiting: set[str], number: int, message: ModelMessage) -> None:
    """Keep account of the calls that wait for a result. Raises BadExport for what fits none."""
    results = [
        part.tool_call_id
        for part in message.parts
        if isinstance(part, ToolReturnPart)
        or (isinstance(part, RetryPromptPart) and part.tool_name is not None)
    ]
    for call in results:
        if call not in waiting:
            raise BadExport(number, f"there is no call {call[:60]!r} for this result to answer.")
        waiting.remove(call)
    if waiting and not (results and isinstance(message, ModelRequest)):
        call = min(waiting)[:60]
        raise BadExport(number, f"the call {call!r} has no result before this message.")
    waiting |= {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
