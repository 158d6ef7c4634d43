from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart

from memory.recordings import Recorded, Recording, read

KITCHEN = Path(__file__).parents[3] / "agents" / "demo" / "kitchen.jsonl"


@pytest.fixture(scope="module")
def kitchen() -> Recording:
    (recording,) = read(KITCHEN)
    return recording


def is_prompt(recorded: Recorded) -> bool:
    return any(isinstance(part, UserPromptPart) for part in recorded.message.parts)


def test_the_demo_conversation_lasts_about_five_weeks(kitchen: Recording) -> None:
    first, last = kitchen.messages[0].at, kitchen.messages[-1].at

    assert (kitchen.title, kitchen.time_zone) == ("Kitchen refit", "Europe/Berlin")
    assert timedelta(weeks=5) <= last - first <= timedelta(weeks=6)


def test_the_demo_conversation_pauses_between_its_days(kitchen: Recording) -> None:
    gaps = [later.at - earlier.at for earlier, later in pairwise(kitchen.messages)]

    assert sum(gap > timedelta(hours=12) for gap in gaps) >= 12


def test_every_prompt_of_the_demo_conversation_is_answered(kitchen: Recording) -> None:
    following = [later for earlier, later in pairwise(kitchen.messages) if is_prompt(earlier)]

    assert all(isinstance(recorded.message, ModelResponse) for recorded in following)
    assert isinstance(kitchen.messages[-1].message.parts[-1], TextPart)


def test_the_demo_conversation_calls_tools_of_several_kinds(kitchen: Recording) -> None:
    parts = [part for recorded in kitchen.messages for part in recorded.message.parts]
    tools = {part.tool_name for part in parts if isinstance(part, ToolCallPart)}

    assert tools == {"check_calendar", "convert_units", "current_time", "find_quotes", "recall"}


def test_what_the_demo_conversation_recalls_was_said(kitchen: Recording) -> None:
    parts = [part for recorded in kitchen.messages for part in recorded.message.parts]
    (recalled,) = [
        part.content
        for part in parts
        if part.part_kind == "tool-return" and part.tool_name == "recall"
    ]
    said = {
        (recorded.at.isoformat(), recorded.message.parts[0].content)
        for recorded in kitchen.messages
        if is_prompt(recorded)
    }

    assert {(message["at"], message["text"]) for message in recalled["messages"]} <= said
