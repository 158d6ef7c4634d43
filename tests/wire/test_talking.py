"""Chat and observe through every provider's real SDK and wire format."""

import json
from datetime import UTC
from decimal import Decimal

import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from memory.engine.values import LineKind, ObserverRequest, PartKind, ReflectorRequest
from memory.messages import dump, load, open_calls, parts_of
from memory.observer import observe
from memory.reflector import reflect
from memory.tokens import count_message
from tests.wire.dialects import INPUT_TOKENS, KEY, OUTPUT_TOKENS
from tests.wire.server import Call, Say

PIECES = ("It is ", "sunny ", "in Lisbon.")
OBSERVATIONS = """<observations>
Date: May 8, 2023
* 🔴 (13:56) User adopted a dog named Rex on May 6, 2023 [#1]
</observations>
<current-task>Find a vet</current-task>"""


def weather_agent(model):
    agent = Agent(model, instructions="Be brief.")

    @agent.tool_plain
    def weather(city: str) -> dict[str, object]:
        if city != "Lisbon":
            raise ModelRetry("no such city")
        return {"city": city, "sky": "sunny"}

    return agent


async def streamed(agent, prompt):
    """Return the events of a run, and its result."""
    async with agent.run_stream_events(prompt) as stream:
        events = [event async for event in stream]
    return events, events[-1].result


def text_pieces(events):
    for event in events:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            yield event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            yield event.delta.content_delta


@pytest.mark.asyncio
async def test_a_streamed_chat_calls_a_tool_and_answers_piece_by_piece(open_wire):
    wire, model = open_wire(Call("weather", {"city": "Lisbon"}), Say(PIECES))
    events, result = await streamed(weather_agent(model), "How is the weather in Lisbon?")
    assert [piece for piece in text_pieces(events) if piece] == list(PIECES)
    assert [e.part.content for e in events if isinstance(e, FunctionToolResultEvent)] == [
        {"city": "Lisbon", "sky": "sunny"}
    ]
    assert result.output == "".join(PIECES)
    assert len(wire.heard) == 2
    assert "sunny" in json.dumps(wire.heard[1].body)


@pytest.mark.asyncio
async def test_every_message_of_a_chat_comes_back_from_storage_as_it_was(open_wire):
    _, model = open_wire(Call("weather", {"city": "Lisbon"}), Say(PIECES))
    _, result = await streamed(weather_agent(model), "How is the weather in Lisbon?")
    history = [load(dump(message)) for message in result.all_messages()]
    kinds = [part.kind for message in history for part in parts_of(message)]
    assert kinds == [PartKind.USER, PartKind.CALL, PartKind.RESULT, PartKind.TEXT]
    assert open_calls(history) == []
    assert all(count_message(message) > 0 for message in history)
    assert [parts_of(m) for m in history] == [parts_of(m) for m in result.all_messages()]


@pytest.mark.asyncio
async def test_a_payload_of_a_real_answer_stays_as_it_is_from_then_on(open_wire):
    _, model = open_wire(Call("weather", {"city": "Lisbon"}), Say(PIECES))
    _, result = await streamed(weather_agent(model), "How is the weather in Lisbon?")
    payloads = [dump(message) for message in result.all_messages()]
    assert [dump(load(payload)) for payload in payloads] == payloads


@pytest.mark.asyncio
async def test_a_stored_chat_goes_on_with_the_same_provider(open_wire):
    wire, model = open_wire(
        Call("weather", {"city": "Lisbon"}), Say(PIECES), Say(("You asked about Lisbon.",))
    )
    agent = weather_agent(model)
    _, result = await streamed(agent, "How is the weather in Lisbon?")
    history = [load(dump(message)) for message in result.all_messages()]
    again = await agent.run("What did I ask?", message_history=history)
    assert again.output == "You asked about Lisbon."
    assert "How is the weather in Lisbon?" in json.dumps(wire.heard[2].body)


@pytest.mark.asyncio
async def test_the_key_travels_in_a_header_and_nowhere_else(open_wire):
    wire, model = open_wire(Say(PIECES))
    await Agent(model).run("hello")
    (heard,) = wire.heard
    assert KEY in " ".join(heard.headers.values())
    assert KEY not in heard.path
    assert KEY not in json.dumps(heard.body)


@pytest.mark.asyncio
async def test_an_observer_call_returns_lines_and_what_it_took(open_wire, dialect):
    wire, model = open_wire(Say((OBSERVATIONS[:40], OBSERVATIONS[40:])))
    request = ObserverRequest(
        "You are the Observer.\nWrite observations.",
        ("<conversation>…</conversation>", "Write what is new."),
        {1: 17},
    )
    observed = await observe(request, model=model, tz=UTC)
    (line,) = observed.output.lines
    assert (line.kind, line.cites) == (LineKind.HIGH, (1,))
    assert observed.output.current_task == "Find a vet"
    reply = observed.reply
    assert reply.text == OBSERVATIONS
    assert reply.model == dialect.model
    assert (reply.input_tokens, reply.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert reply.cost is not None
    assert Decimal() < reply.cost < 1
    (heard,) = wire.heard
    sent = json.dumps(heard.body)
    assert sent.index("You are the Observer.") >= 0
    assert sent.index("<conversation>") < sent.index("Write what is new.")


@pytest.mark.asyncio
async def test_a_reflector_call_returns_lines(open_wire):
    _, model = open_wire(Say((OBSERVATIONS,)))
    request = ReflectorRequest("You are the Reflector.", ("<lines>…</lines>",), 400, 1, {})
    reflected = await reflect(request, model=model, tz=UTC)
    assert [line.text for line in reflected.output.lines] == [
        "User adopted a dog named Rex on May 6, 2023"
    ]
