"""Providers that are busy for a moment, as they really say it."""

import pytest
from pydantic_ai import Agent

from agents.aloud import Aloud
from agents.patient import Patient
from tests.wire.server import Refuse, Say


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_provider_is_asked_again_and_each_time_once(open_wire, status):
    wire, model = open_wire(Refuse(status), Refuse(status), Say(("Hello", " there")))
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def hear(event):
        pass

    said = await Agent(Aloud(Patient(model, tries=3, sleep=sleep), hear)).run("Hi")
    assert said.output == "Hello there"
    assert len(slept) == 2
    assert len(wire.heard) == 3
