"""Give a pydantic-ai agent the tool ``recall``: the raw messages behind its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from pydantic import BaseModel, Field, model_validator
from pydantic_ai import RunContext, Tool
from pydantic_ai.tools import ToolDefinition

from memory.engine.recall import (
    ANY,
    CURRENT,
    KINDS,
    MOST_MESSAGES,
    MOST_PAGES,
    NAME,
    Mode,
    range_in,
)
from memory.services.recall import Asked, Refused, Scope
from memory.services.recall import recall as recall_messages

TOLD = """\
Read earlier messages again, exactly as they were said.

Use it when the wording itself matters, or when an observation leaves out a detail. Messages have \
positions: numbers that rise within a conversation."""

ThreadOf = Callable[[RunContext[Any]], UUID]


def _one_of(default: str, known: Sequence[str], description: str) -> Any:
    # Shown to the model, not enforced here: what it gets wrong is answered in a sentence, and
    # does not count as a failed call.
    return Field(default, description=description, json_schema_extra={"enum": [*known]})


def _between(default: int, low: int, high: int, description: str) -> Any:
    bounds: dict[str, Any] = {"minimum": low, "maximum": high}
    return Field(default, description=description, json_schema_extra=bounds)


def _number(description: str) -> Any:
    return Field(None, description=description, json_schema_extra=_integer)


def _integer(schema: dict[str, Any]) -> None:
    del schema["anyOf"], schema["default"]
    schema["type"] = "integer"


class Recall(BaseModel):
    """Hold the arguments of ``recall`` as the model gives them."""

    mode: str = _one_of(
        Mode.MESSAGES.value,
        [mode.value for mode in Mode],
        "messages reads a conversation, words looks for messages with the words of query, "
        "threads lists the conversations.",
    )
    query: str = Field("", description="Words to look for; any of them may match.")
    first: int | None = _number("Position of the first message of a range.")
    last: int | None = _number("Position of the last message of a range.")
    cursor: int | None = _number(
        "Position that pages are counted from; with part, the message itself."
    )
    thread: str = Field(
        CURRENT,
        description="Id of another conversation, from mode threads. With mode words, all looks in "
        "every one.",
    )
    anchor: str = _one_of("start", ["start", "end"], "Where to begin when there is no cursor.")
    page: int = _between(
        1,
        -MOST_PAGES,
        MOST_PAGES,
        "With a cursor, 1 is what follows it and -1 what comes before it; 2 and -2 lie one page "
        "further.",
    )
    limit: int = _between(MOST_MESSAGES, 1, MOST_MESSAGES, "Most messages, or threads, of a page.")
    detail: str = _one_of(
        "low", ["low", "high"], "low shows messages shortened, high one part of one in full."
    )
    part: int | None = _number("Number of the part to show in full, of the message at cursor.")
    part_kind: str = _one_of(ANY, [ANY, *KINDS], "Only parts of this kind.")
    tool: str = Field("", description="Only calls and results of this tool.")
    offset: int = Field(0, description="Characters of the part to skip, to go on in a long one.")
    before: str = Field(
        "", description="Words and threads: only before this date, as in 2026-03-31."
    )
    after: str = Field("", description="Words and threads: only on this date or later.")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        # Models send null, or nothing at all, for what they do not want, and give a range as
        # they see it written.
        kept = {name: value for name, value in given.items() if value is not None}
        if ends := range_in(str(kept.get("cursor", ""))):
            del kept["cursor"]
            kept = {"first": ends[0], "last": ends[1], **kept}
        return kept


def recall_tool(thread: UUID | ThreadOf, *, scope: Scope | None = None) -> Tool[Any]:
    """Return the tool for an agent that talks in a thread: its id, or what gives it for a run.

    What can be reached is what the memory options of that thread allow (``retrieval``), and not
    more than ``scope``; when neither says anything, the thread. With ``scope="thread"`` the model
    is not told of other threads.
    """

    async def recall(ctx: RunContext[Any], asked: Recall) -> str:
        thread_id = thread(ctx) if callable(thread) else thread
        return await answer(thread_id, asked, scope=scope)

    async def prepare(ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition:
        return _without_thread(tool) if scope == "thread" else tool

    return Tool(recall, name=NAME, description=TOLD, prepare=prepare)


async def answer(thread_id: UUID, asked: Recall, *, scope: Scope | None = None) -> str:
    """Return what a model is told: what it asked for, or a sentence why not."""
    try:
        return await sync_to_async(recall_messages)(
            thread_id, Asked(**asked.model_dump()), scope=scope
        )
    except Refused as refusal:
        return str(refusal)


def _without_thread(tool: ToolDefinition) -> ToolDefinition:
    schema = dict(tool.parameters_json_schema)
    schema["properties"] = {
        name: value for name, value in schema["properties"].items() if name != "thread"
    }
    return replace(tool, parameters_json_schema=schema)
