import logging
from urllib.request import Request, urlopen

import pytest
from asgiref.sync import sync_to_async

from agents.models import Turn
from agents.services.send import send
from agents.services.turn import run_turns
from memory import telemetry
from memory.models import Cycle
from memory.services.due import run_due
from omsite import watch
from omsite.config import Config
from omsite.logs import About
from omsite.metrics.meter import Meter
from omsite.metrics.serve import serve
from tests.fakes import Models

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "a token of some length"
LONG = "I keep bees on the roof. " * 60


@pytest.fixture(autouse=True)
def restored():
    """Measure with nothing again after each test."""
    before = watch.use(None)
    yield
    watch.use(before)


def config(**values):
    return Config(_env_file=None, **{"om_metrics": False, "om_traces": False} | values)


def test_nobody_is_watched_unless_asked_for():
    assert watch.watch_web(config()) is None
    watch.watch_worker(config(om_metrics_port=9100))
    assert watch.meter() is None
    assert not telemetry.is_watched()


def test_a_web_process_shows_what_waits_in_rows_too():
    made = watch.watch_web(config(om_metrics=True))
    assert made is watch.meter()
    assert made.registry.get_sample_value("omsite_turns_open", {"status": "waiting"}) == 0


def test_a_web_process_beside_workers_shows_what_waits_in_the_broker_too():
    nobody = "redis://127.0.0.1:1/0"
    made = watch.watch_web(config(om_metrics=True, om_dispatcher="celery", redis_url=nobody))
    assert made.registry.get_sample_value("omsite_broker_up") == 0


def test_without_workers_there_is_no_broker_to_ask():
    made = watch.watch_web(config(om_metrics=True, redis_url="redis://127.0.0.1:1/0"))
    assert made.registry.get_sample_value("omsite_broker_up") is None


def test_a_worker_measures_and_leaves_the_rows_to_others():
    watch.watch_worker(config(om_metrics=True))
    assert watch.meter().registry.get_sample_value("omsite_database_up") is None


def test_a_worker_shows_its_figures_on_its_port():
    free = serve(Meter().registry, 0, TOKEN)
    port = free.server_address[1]
    free.shutdown()
    free.server_close()
    watch.watch_worker(config(om_metrics=True, om_metrics_token=TOKEN, om_metrics_port=port))
    request = Request(f"http://127.0.0.1:{port}/metrics")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urlopen(request) as answer:
        assert b"omsite_turns_total" in answer.read()


@pytest.fixture
def value():
    """Measure, and return what reads a figure."""
    made = Meter()
    watch.use(made)
    return lambda name, **labels: made.registry.get_sample_value(f"omsite_{name}", labels)


async def test_turns_cycles_and_calls_are_measured_where_they_end(thread, value):
    models = Models()
    for _ in range(8):
        await sync_to_async(send)(thread.pk, LONG)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)

    turns = value("turns_total", status="done")
    assert turns == await Turn.objects.acount() == 8
    assert value("turn_duration_seconds_count", status="done") == turns
    assert value("step_duration_seconds_count", outcome="done") == turns
    assert value("first_token_seconds_count", asker="actor") == turns
    assert value("model_tokens_total", asker="actor", model="fake", direction="output") > 0
    async for cycle in Cycle.objects.values("kind", "status").distinct():
        count = await Cycle.objects.filter(**cycle).acount()
        assert value("cycles_total", **cycle) == count, cycle
    assert value("model_call_duration_seconds_count", asker="observer") > 0
    assert value("model_call_duration_seconds_count", asker="reflector") > 0


def fail(text):
    raise ValueError("the Observer refused")


async def test_a_cycle_that_fails_is_counted_and_its_records_name_it(thread, value, caplog):
    models = Models(observer=fail)
    caplog.handler.addFilter(About())
    with caplog.at_level(logging.INFO, logger="memory"):
        await sync_to_async(send)(thread.pk, LONG)
        await run_turns(thread.pk, resolve=models)
        await run_due(thread.pk, resolve=models)

    cycle = await Cycle.objects.aget()
    assert value("cycles_total", kind=cycle.kind, status="failed") == 1
    assert value("model_calls_total", asker="observer", model="fake", outcome="failed") == 1
    record = next(r for r in caplog.records if "the Observer refused" in r.getMessage())
    assert (record.cycle, record.thread, record.turn) == (str(cycle.pk), str(thread.pk), "")


async def test_a_turn_that_fails_is_counted_and_its_records_name_it(thread, value, caplog):
    def refuse(messages):
        raise ValueError("the Actor refused")

    caplog.handler.addFilter(About())
    with caplog.at_level(logging.INFO, logger="agents"):
        await sync_to_async(send)(thread.pk, "Hello")
        await run_turns(thread.pk, resolve=Models(actor=refuse))

    turn = await Turn.objects.aget()
    assert value("turns_total", status="failed") == 1
    record = next(r for r in caplog.records if "the Actor refused" in r.getMessage())
    assert (record.turn, record.thread) == (str(turn.pk), str(thread.pk))
