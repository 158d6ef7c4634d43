"""Ask an agent one thing without storing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from pydantic_ai import UsageLimits
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.run import AgentRunResult

from agents import costs, words
from agents.actor import build
from agents.models import AgentProfile
from agents.tools import RECALL, Deps
from memory import llm
from memory.services.cycles import Resolve, resolve_model
from memory.telemetry import calling

SECONDS = 60.0
MOST_REQUESTS = 6
LONGEST_PROMPT = 4_000


@dataclass(frozen=True)
class Trial:
    """Show what an agent answered, or why it did not."""

    well: bool
    said: str
    took: str
    tokens: str = ""
    cost: str = ""
    tools: tuple[str, ...] = ()


async def ask(
    profile: AgentProfile,
    prompt: str,
    *,
    zone: ZoneInfo,
    resolve: Resolve = resolve_model,
    seconds: float = SECONDS,
) -> Trial:
    """Return what an agent, stored or not, answers to a prompt; a failure is told, never raised.

    It has its tools but ``recall``: there is no conversation to look back on.
    """
    began = perf_counter()
    if not prompt.strip():
        return Trial(False, "Write what to ask the agent.", words.since(began))
    try:
        async with asyncio.timeout(seconds):
            model = await asyncio.to_thread(resolve, profile.model_name)
            able = AgentProfile(
                instructions=profile.instructions,
                tools=[name for name in profile.tools if name != RECALL],
            )
            with calling("trial", model.model_name) as call:
                result = await build(able, model=model).run(
                    prompt[:LONGEST_PROMPT],
                    deps=Deps(thread_id=uuid4(), zone=zone),
                    usage_limits=UsageLimits(request_limit=MOST_REQUESTS),
                )
                call.used(result.usage)
    except TimeoutError:
        return Trial(False, f"No answer within {seconds:.0f} seconds.", words.since(began))
    except Exception as error:  # noqa: BLE001 - whatever fails is what the test is to tell
        return Trial(False, llm.explain(error), words.since(began))
    return _answered(profile.model_name, result, began)


def _answered(name: str, result: AgentRunResult[Any], began: float) -> Trial:
    usage = result.usage
    return Trial(
        True,
        str(result.output).strip() or "It answered with nothing.",
        words.since(began),
        f"{words.tokens(usage.input_tokens)} in, {words.tokens(usage.output_tokens)} out",
        costs.words(costs.of_run(name, usage)),
        tuple(_called(result.all_messages())),
    )


def _called(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ModelResponse):
            yield from (p.tool_name for p in message.parts if isinstance(p, ToolCallPart))
