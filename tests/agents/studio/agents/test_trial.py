import asyncio
from zoneinfo import ZoneInfo

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from agents.models import AgentProfile
from agents.studio.agents.trial import ask
from memory.llm import ModelUnavailable

ZONE = ZoneInfo("Europe/Berlin")


def asked(answer, *, prompt="Hello", seconds=5.0, tools=("current_time", "recall")):
    profile = AgentProfile(instructions="Be brief.", model="fake", tools=list(tools))
    return asyncio.run(
        ask(
            profile,
            prompt,
            zone=ZONE,
            resolve=lambda name: FunctionModel(answer, model_name=name),
            seconds=seconds,
        )
    )


def test_the_answer_is_shown_with_the_tools_it_took():
    def answer(messages, info):
        assert info.instructions == "Be brief."
        assert [tool.name for tool in info.function_tools] == ["current_time"]
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("current_time", {})])
        return ModelResponse(parts=[TextPart("It is noon.")])

    trial = asked(answer)

    assert (trial.well, trial.said, trial.tools) == (True, "It is noon.", ("current_time",))
    assert trial.cost == "price unknown"


def test_an_agent_that_never_comes_to_an_end_is_stopped():
    trial = asked(lambda messages, info: ModelResponse(parts=[ToolCallPart("current_time", {})]))

    assert not trial.well
    assert "limit" in trial.said


def test_an_agent_that_takes_too_long_is_not_waited_for():
    async def answer(messages, info):
        await asyncio.sleep(30)

    assert asked(answer, seconds=0.05).said == "No answer within 0 seconds."


def test_a_model_that_is_not_set_up_says_what_to_do():
    def missing(name):
        raise ModelUnavailable("Set OPENAI_API_KEY.")

    profile = AgentProfile(instructions="Be brief.", model="openai:gpt-5")
    trial = asyncio.run(ask(profile, "Hello", zone=ZONE, resolve=missing))

    assert (trial.well, trial.said) == (False, "Set OPENAI_API_KEY.")


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_nothing_is_asked_without_a_prompt(prompt):
    trial = asked(lambda messages, info: pytest.fail("asked"), prompt=prompt)

    assert trial.said == "Write what to ask the agent."
