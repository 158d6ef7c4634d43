from uuid import uuid4

import pytest
from django.utils import timezone
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.test import TestModel

from agents.actor import build
from agents.models import AgentProfile
from agents.steps import Steps
from memory import telemetry
from memory.capability import TurnMemory

PROFILE = AgentProfile(slug="tester", name="Tester", instructions="Be brief.", tools=[])


@pytest.fixture
def watched():
    """Listen."""
    before = telemetry.measure_with(lambda fact: None)
    yield
    telemetry.measure_with(before)


def steps_of(agent):
    found = []
    agent.root_capability.apply(found.append)
    return [each for each in found if isinstance(each, Steps)]


def remembering():
    memory = TurnMemory(uuid4(), prompt_position=1, at=timezone.now())
    return build(PROFILE, model=TestModel(), memory=memory)


def test_steps_are_told_of_while_somebody_listens(watched):
    assert len(steps_of(remembering())) == 1


def test_steps_cost_nothing_while_nobody_does():
    assert steps_of(remembering()) == []


def test_a_trial_has_no_steps_of_a_turn(watched):
    assert steps_of(build(PROFILE, model=TestModel())) == []


def test_a_step_stands_around_the_call_of_the_model():
    order = Steps().get_ordering()
    assert order.position == "outermost"
    assert Instrumentation in order.wraps
