"""Run turns and cycles with the exporter that keeps spans in memory."""

from types import SimpleNamespace
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents.services.send import send
from agents.services.turn import run_turns
from memory import telemetry
from memory.services.due import run_due
from memory.tasks import run_observers
from omsite.celery import _take_cause, app
from omsite.tracing import exporting, send_cause, take_cause, trace_to
from tests.fakes import Models

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "I keep seventeen beehives on the roof. "
ANSWER = "Understood: apiculture."


@pytest.fixture
def tracing():
    """Return what begins to trace, and yields the spans that ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def begin(*, content=False):
        trace_to(provider, content=content)
        return exporter.get_finished_spans

    yield begin
    trace_to(None)
    provider.shutdown()


async def turn(thread, models, prompt=SAID):
    await sync_to_async(send)(thread.pk, prompt)
    await run_turns(thread.pk, resolve=models)


def answering():
    return Models(actor=lambda messages: ANSWER)


def named(spans, name):
    found = [span for span in spans if span.name.startswith(name)]
    assert found, [span.name for span in spans]
    return found


def is_inside(span, outer):
    return span.parent is not None and span.parent.span_id == outer.context.span_id


async def test_a_turn_is_a_trace_of_its_steps_and_their_model_calls(thread, tracing):
    spans = tracing()
    await turn(thread, answering())

    (whole,), (run,) = named(spans(), "turn"), named(spans(), "invoke_agent")
    (step,), (chat,) = named(spans(), "step"), named(spans(), "chat")
    assert whole.parent is None
    assert is_inside(run, whole)
    assert is_inside(step, run)
    assert is_inside(chat, step)
    assert run.name == "invoke_agent tester"
    assert whole.attributes["omsite.thread.id"] == str(thread.pk)
    assert whole.attributes["omsite.status"] == "done"
    assert chat.attributes["gen_ai.request.model"] == "fake"


async def test_each_step_has_its_call_and_tools_have_spans_too(thread, tracing):
    spans, asked = tracing(), []

    async def play(messages, info):
        asked.append(messages)
        if len(asked) == 1:
            yield {0: DeltaToolCall("current_time", "{}", tool_call_id="one")}
        else:
            yield ANSWER

    await turn(thread, lambda name: FunctionModel(stream_function=play, model_name="fake"))
    steps, chats = named(spans(), "step"), named(spans(), "chat")
    assert len(steps) == len(chats) == 2
    assert all(is_inside(chat, step) for chat, step in zip(chats, steps, strict=True))
    assert named(spans(), "execute_tool current_time")


async def test_a_turn_that_fails_says_so_and_not_why(thread, tracing):
    spans = tracing()

    async def fail(messages, info):
        raise ValueError("the text was private")
        yield ""

    await turn(thread, lambda name: FunctionModel(stream_function=fail, model_name="fake"))
    (whole,) = named(spans(), "turn")
    assert whole.attributes["omsite.status"] == "failed"
    assert not whole.status.is_ok
    assert "private" not in all_of(spans())


async def test_an_observer_and_a_reflector_are_traced_too(thread, tracing):
    spans, models = tracing(), answering()
    for _ in range(8):
        await turn(thread, models, SAID * 20)
        await run_due(thread.pk, resolve=models)

    for kind, asker in (("buffer", "observer"), ("buffer_reflection", "reflector")):
        cycle = named(spans(), f"cycle {kind}")[0]
        run = next(s for s in named(spans(), f"invoke_agent {asker}") if is_inside(s, cycle))
        assert any(is_inside(chat, run) for chat in named(spans(), "chat"))
        assert cycle.attributes["omsite.status"] == "done"


def all_of(spans):
    return "".join(span.to_json() for span in spans)


async def test_what_is_said_is_in_no_trace(thread, tracing):
    spans, models = tracing(), answering()
    for _ in range(4):
        await turn(thread, models, SAID * 20)
        await run_due(thread.pk, resolve=models)
    text = all_of(spans())
    assert named(spans(), "cycle")
    for private in ("beehives", "apiculture", "Be brief.", "You are the Observer", "Something was"):
        assert private not in text, private


async def test_what_is_said_is_there_when_it_is_asked_for(thread, tracing):
    spans = tracing(content=True)
    await turn(thread, answering())
    assert "beehives" in all_of(spans())
    assert "apiculture" in all_of(spans())


async def test_without_tracing_no_agent_makes_a_span(thread, tracing):
    spans = tracing()
    trace_to(None)
    await turn(thread, answering())
    assert not spans()


def test_a_task_is_linked_to_what_sent_it(tracing):
    spans, headers = tracing(), {}
    with telemetry.working("turn", [uuid4()], thread=None), telemetry.stepping():
        send_cause(headers)
    take_cause(headers)
    with telemetry.working("cycle", [uuid4()], thread=None, name="buffer"):
        pass
    take_cause(None)
    with telemetry.working("cycle", [uuid4()], thread=None, name="reflect"):
        pass
    _, whole, linked, alone = spans()
    assert [link.context.span_id for link in linked.links] == [whole.context.span_id]
    assert not alone.links


def test_a_message_keeps_its_headers_on_the_way_to_a_worker(tracing, settings):
    """Send through a broker in memory, as Celery does, and look at what the worker is given."""
    settings.CONFIG = settings.CONFIG.model_copy(update={"om_traces": True})
    tracing()
    with app.connection_for_write("memory://") as connection:
        with telemetry.working("turn", [uuid4()], thread=None):
            run_observers.apply_async(["thread"], connection=connection, queue="headers")
        message = connection.SimpleQueue("headers").get(timeout=5)
    assert message.headers["traceparent"].startswith("00-")
    assert message.headers["task"] == "memory.tasks.run_observers"


def test_before_a_task_its_headers_are_read(tracing, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"om_traces": True})
    spans, headers = tracing(), {}
    with telemetry.working("turn", [uuid4()], thread=None):
        send_cause(headers)
    _take_cause(SimpleNamespace(request=SimpleNamespace(headers=headers)))
    with telemetry.working("cycle", [uuid4()], thread=None, name="buffer"):
        pass
    assert spans()[1].links


def test_the_service_has_a_name_that_the_environment_may_change(monkeypatch):
    first = exporting()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "omsite-web")
    second = exporting()
    assert first.resource.attributes["service.name"] == "omsite"
    assert second.resource.attributes["service.name"] == "omsite-web"
    first.shutdown()
    second.shutdown()


async def test_agents_of_others_are_left_alone_once_tracing_ends(tracing):
    tracing()
    trace_to(None)
    model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("Hi")]))
    assert (await Agent(model).run("Hello")).output == "Hi"
