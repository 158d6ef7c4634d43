import asyncio
import logging
from uuid import uuid4

import pytest
from django.db import transaction
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pydantic_ai.usage import RequestUsage

from memory import telemetry
from memory.dispatch import LoopDispatcher
from memory.telemetry import Called, Closed, Stepped, calling, closed, stepping, working


@pytest.fixture
def facts():
    """Return the facts that are told."""
    told = []
    before = telemetry.measure_with(told.append)
    yield told
    telemetry.measure_with(before)


@pytest.fixture
def spans():
    """Return what yields the spans that ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    before = telemetry.trace_with(provider.get_tracer("test"))
    yield exporter.get_finished_spans
    telemetry.trace_with(before)
    provider.shutdown()


@pytest.mark.django_db(transaction=True)
def test_an_end_is_told_once_it_is_committed(facts):
    turn = uuid4()
    with working("turn", [turn], thread=None), transaction.atomic():
        closed("turn", turn, "done")
        assert facts == []
    (fact,) = facts
    assert (fact.kind, fact.status) == ("turn", "done")
    assert fact.seconds >= 0


@pytest.mark.django_db(transaction=True)
def test_an_end_that_is_rolled_back_is_not_told(facts):
    with transaction.atomic():
        closed("turn", uuid4(), "done")
        transaction.set_rollback(True)
    assert facts == []


@pytest.mark.django_db
def test_the_end_of_what_another_process_did_has_no_duration(
    facts, django_capture_on_commit_callbacks
):
    with (
        working("turn", [uuid4()], thread=None),
        django_capture_on_commit_callbacks(execute=True),
    ):
        closed("cycle", uuid4(), "interrupted", name="buffer")
    assert facts == [Closed("cycle", "buffer", "interrupted", None)]


def test_a_call_tells_what_it_took(facts):
    with calling("actor", "fake") as call:
        call.heard()
        first = call.first_token
        call.heard()
        call.used(RequestUsage(input_tokens=3, output_tokens=2))
    (fact,) = facts
    assert isinstance(fact, Called)
    assert (fact.asker, fact.model, fact.outcome) == ("actor", "fake", "done")
    assert (fact.input_tokens, fact.output_tokens, fact.cost) == (3, 2, None)
    assert fact.first_token == first <= fact.seconds


@pytest.mark.parametrize(
    ("error", "outcome"), [(ValueError, "failed"), (asyncio.CancelledError, "cancelled")]
)
def test_a_call_that_ends_early_says_how(facts, error, outcome):
    with pytest.raises(error), calling("observer", "fake"):
        raise error
    assert [fact.outcome for fact in facts] == [outcome]


def test_a_step_is_timed(facts):
    with stepping():
        pass
    (fact,) = facts
    assert isinstance(fact, Stepped)
    assert fact.outcome == "done"


def test_a_meter_that_fails_fails_no_work(caplog):
    def fail(fact):
        raise RuntimeError("full")

    before = telemetry.measure_with(fail)
    with caplog.at_level(logging.ERROR), stepping():
        pass
    telemetry.measure_with(before)
    assert "was not measured" in caplog.text


@pytest.mark.django_db
def test_a_span_says_how_its_work_ended(spans, django_capture_on_commit_callbacks):
    turn, thread = uuid4(), uuid4()
    with (
        working("turn", [turn], thread=thread),
        django_capture_on_commit_callbacks(execute=True),
    ):
        closed("turn", turn, "failed")
    (span,) = spans()
    assert span.attributes == {
        "omsite.turn.id": str(turn),
        "omsite.thread.id": str(thread),
        "omsite.status": "failed",
    }
    assert span.status.status_code == StatusCode.ERROR


def test_what_is_raised_is_not_in_a_span(spans):
    with pytest.raises(ValueError, match="private"), working("turn", [uuid4()], thread=None):
        raise ValueError("private")
    with pytest.raises(ValueError, match="private"), stepping():
        raise ValueError("private")
    assert "private" not in "".join(span.to_json() for span in spans())


async def test_work_that_is_woken_is_a_trace_of_its_own_linked_to_what_woke_it(spans):
    async def work(thread_id):
        with working("cycle", [uuid4()], thread=thread_id, name="buffer"):
            pass

    dispatcher = LoopDispatcher(asyncio.get_running_loop(), work)
    with working("turn", [uuid4()], thread=None), stepping():
        dispatcher.wake(uuid4())
    await asyncio.sleep(0)
    await dispatcher.settled()

    by_name = {span.name: span for span in spans()}
    turn, cycle = by_name["turn"], by_name["cycle buffer"]
    assert cycle.parent is None
    assert cycle.context.trace_id != turn.context.trace_id
    assert [link.context.span_id for link in cycle.links] == [turn.context.span_id]
    assert "omsite.turn.id" not in cycle.attributes


async def test_work_asked_for_again_meanwhile_is_linked_to_who_asked_last(spans):
    thread, begun, go = uuid4(), asyncio.Event(), asyncio.Event()

    async def work(thread_id):
        with working("cycle", [uuid4()], thread=thread_id, name="buffer"):
            begun.set()
            await go.wait()

    dispatcher = LoopDispatcher(asyncio.get_running_loop(), work)
    with working("turn", [uuid4()], thread=None):
        dispatcher.wake(thread)
    await begun.wait()
    with working("turn", [uuid4()], thread=None):
        dispatcher.wake(thread)
    await asyncio.sleep(0)
    go.set()
    while dispatcher.busy:
        await dispatcher.settled()
        await asyncio.sleep(0)

    turns = [span.context.span_id for span in spans() if span.name == "turn"]
    links = [span.links[0].context.span_id for span in spans() if span.name != "turn"]
    assert links == turns
    assert len(turns) == 2


def test_what_a_turn_waits_for_is_inside_its_trace(spans):
    with (
        working("turn", [uuid4()], thread=None),
        working("cycle", [uuid4()], thread=None, name="observe"),
    ):
        pass
    cycle, turn = spans()
    assert cycle.parent.span_id == turn.context.span_id
    assert not cycle.links


def test_nobody_is_listening_at_first():
    assert not telemetry.is_watched()
