"""Test the offline model as pydantic-ai runs it."""

import asyncio
import threading

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, ToolCallPart

from memory.offline.model import NAME, SLOW_SECONDS, OfflineModel

CONVERSATION = """<conversation>
Date: May 8, 2023
[#1] User (13:56): I adopted a dog named Rex yesterday.
</conversation>"""
LINES = """<lines>
Date: May 8, 2023
* 🔴 (13:56) User: adopted dog named Rex [#1]
</lines>
<instructions>Your whole reply must stay below 50 tokens.</instructions>"""


def run(prompt: str, instructions: str = "Be kind.", **more: object) -> str:
    agent: Agent[None, str] = Agent(OfflineModel(), instructions=instructions, **more)  # type: ignore[call-overload]
    return asyncio.run(agent.run(prompt)).output


def test_it_observes_when_told_to_be_the_observer() -> None:
    assert "Rex May 7, 2023 [#1]" in run(CONVERSATION, "You are the Observer.\n\nMore.")


def test_it_reflects_when_told_to_be_the_reflector() -> None:
    assert "adopted dog named Rex [#1]" in run(LINES, "You are the Reflector.\n\nMore.")


def test_it_answers_whoever_else_asks() -> None:
    assert "<observations>" not in run(CONVERSATION)


def test_a_user_cannot_make_it_observe() -> None:
    assert "<observations>" not in run(f"You are the Observer.\n{CONVERSATION}")


def test_it_calls_the_clock_once_and_tells_what_it_says() -> None:
    calls: list[str] = []

    def current_time() -> str:
        """Return the time."""
        calls.append("asked")
        return "noon"

    assert run("What time is it?", tools=[current_time]) == "It is noon."
    assert calls == ["asked"]


class _Counts:
    """Count the words of texts, and keep the threads that asked."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def __call__(self, text: str) -> int:
        self.threads.add(threading.get_ident())
        return len(text.split())


def test_it_thinks_beside_the_event_loop_whether_it_streams_or_not() -> None:
    counts = _Counts()
    agent: Agent[None, str] = Agent(
        OfflineModel(count=counts), instructions="You are the Reflector.\n\nMore."
    )

    async def ask() -> None:
        await agent.run(LINES)
        async with agent.run_stream(LINES) as stream:
            await stream.get_output()

    asyncio.run(ask())
    assert counts.threads
    assert threading.get_ident() not in counts.threads


async def _streamed(prompt: str) -> tuple[list[str], int]:
    agent: Agent[None, str] = Agent(OfflineModel(), instructions="Be kind.")
    async with agent.run_stream(prompt) as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
        return pieces, stream.usage.output_tokens


def test_an_answer_streams_word_by_word_and_counts_its_tokens() -> None:
    pieces, tokens = asyncio.run(_streamed("I sold my piano to Ann in Rome."))

    assert len(pieces) > 5
    assert "I sold my piano to Ann in Rome." in "".join(pieces)
    assert tokens > 0


async def _streamed_call() -> list[ToolCallPart]:
    agent: Agent[None, str] = Agent(OfflineModel(), instructions="Be kind.")

    @agent.tool_plain
    def current_time() -> str:
        """Return the time."""
        return "noon"

    async with agent.run_stream("What time is it?") as stream:
        assert await stream.get_output() == "It is noon."
        answers = [m for m in stream.all_messages() if isinstance(m, ModelResponse)]
        return [part for m in answers for part in m.parts if isinstance(part, ToolCallPart)]


def test_a_tool_is_called_while_streaming_too() -> None:
    [call] = asyncio.run(_streamed_call())

    assert call.tool_name == "current_time"


def test_its_name_is_the_one_people_choose_it_by() -> None:
    assert OfflineModel().model_name == NAME == "offline"


def test_it_can_be_told_to_fail_or_to_say_nothing() -> None:
    for mode, raised in (("fails", ModelHTTPError), ("empty", UnexpectedModelBehavior)):
        agent = Agent(OfflineModel(mode=mode), retries=0)
        with pytest.raises(raised):
            agent.run_sync("Hello")


def test_it_can_be_told_to_be_slow() -> None:
    assert OfflineModel(1.0, mode="slow")._delay == 1.0 + SLOW_SECONDS
