"""A tool call that waits for somebody's approval is stored once and answered once."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

from memory.dispatch import NoDispatcher, cycles
from memory.library import ObservationalMemory
from memory.messages import load, open_calls
from memory.models import Message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("settles")]

THOUGHT = ThinkingPart("The owner must be asked.", signature="signed", provider_name="function")


@pytest.fixture(autouse=True)
def _dispatcher():
    """Leave the dispatcher in use as it was."""
    before = cycles.use(NoDispatcher())
    yield
    cycles.use(before)


class Asks:
    """Call a tool first, then say what it returned; remember every request."""

    def __init__(self):
        self.requests = []

    def __call__(self, messages, info):
        self.requests.append(list(messages))
        returned = [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(str(returned[-1]))])
        return ModelResponse(parts=[THOUGHT, ToolCallPart("open_hive", {}, "call-1")])


def keeper(model):
    agent = Agent(
        FunctionModel(model, model_name="asks"),
        output_type=[str, DeferredToolRequests],
        capabilities=[ObservationalMemory("hive", resource="ada")],
    )

    @agent.tool_plain(requires_approval=True)
    def open_hive() -> str:
        """Open the hive."""
        return "It is open."

    return agent


async def stored():
    return [load(m.payload) async for m in Message.objects.order_by("position")]


@pytest.mark.parametrize(
    ("verdict", "said"), [(True, "It is open."), (ToolDenied("Not in winter."), "Not in winter.")]
)
async def test_a_call_that_waited_for_approval_is_neither_lost_nor_doubled(verdict, said):
    model = Asks()
    agent = keeper(model)

    first = await agent.run("Open the hive.")
    assert isinstance(first.output, DeferredToolRequests)
    assert [call.tool_call_id for call in open_calls(await stored())] == ["call-1"]
    verdicts = DeferredToolResults(approvals={"call-1": verdict})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=verdicts)

    assert second.output == said
    parts = [part for message in await stored() for part in message.parts]
    assert [type(part).__name__ for part in parts] == [
        *("UserPromptPart", "ThinkingPart", "ToolCallPart", "ToolReturnPart", "TextPart"),
    ]
    sent = [part for message in model.requests[-1] for part in message.parts]
    assert [p.signature for p in sent if isinstance(p, ThinkingPart)] == ["signed"]
    assert open_calls(model.requests[-1]) == []


async def test_a_call_nobody_decided_on_is_closed_by_the_next_prompt():
    model = Asks()
    agent = keeper(model)
    await agent.run("Open the hive.")

    await agent.run("Never mind.")

    assert open_calls(await stored()) == []
    assert open_calls(model.requests[-1]) == []
