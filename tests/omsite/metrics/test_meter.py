import asyncio
import re
from decimal import Decimal
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from memory.telemetry import Called, Closed, Stepped
from omsite.metrics.meter import Meter


@pytest.fixture
def meter():
    return Meter()


def value(meter, name, **labels):
    return meter.registry.get_sample_value(f"omsite_{name}", labels)


def called(**changes):
    fields = {
        "asker": "actor",
        "model": "fake",
        "outcome": "done",
        "seconds": 2.0,
        "first_token": 0.5,
        "input_tokens": 30,
        "output_tokens": 4,
        "cost": Decimal("0.25"),
    }
    return Called(**fields | changes)


def test_turns_are_counted_and_timed_by_their_end(meter):
    meter(Closed("turn", "", "done", 2.0))
    meter(Closed("turn", "", "failed", 1.0))
    meter(Closed("turn", "", "interrupted", None))
    assert value(meter, "turns_total", status="done") == 1
    assert value(meter, "turns_total", status="interrupted") == 1
    assert value(meter, "turn_duration_seconds_sum", status="done") == 2
    assert value(meter, "turn_duration_seconds_count", status="interrupted") is None


def test_cycles_are_counted_by_kind_and_end(meter):
    meter(Closed("cycle", "buffer", "done", 3.0))
    meter(Closed("cycle", "reflect", "discarded", 1.0))
    assert value(meter, "cycles_total", kind="buffer", status="done") == 1
    assert value(meter, "cycles_total", kind="reflect", status="discarded") == 1
    assert value(meter, "cycle_duration_seconds_sum", kind="buffer", status="done") == 3


def test_a_call_counts_its_tokens_cost_and_times_by_model(meter):
    meter(called())
    meter(called(input_tokens=10))
    of = {"asker": "actor", "model": "fake"}
    assert value(meter, "model_calls_total", **of, outcome="done") == 2
    assert value(meter, "model_tokens_total", **of, direction="input") == 40
    assert value(meter, "model_tokens_total", **of, direction="output") == 8
    assert value(meter, "model_cost_dollars_total", **of) == 0.5
    assert value(meter, "first_token_seconds_count", asker="actor") == 2
    assert value(meter, "model_call_duration_seconds_sum", asker="actor") == 4


def test_a_cost_that_is_not_known_is_not_counted_as_nothing(meter):
    meter(called(cost=None))
    of = {"asker": "actor", "model": "fake"}
    assert value(meter, "model_calls_unpriced_total", **of) == 1
    assert value(meter, "model_cost_dollars_total", **of) is None


def test_the_offline_model_is_known_to_cost_nothing(meter):
    meter(called(model="offline", cost=None))
    assert value(meter, "model_calls_unpriced_total", asker="actor", model="offline") is None


def test_a_call_that_failed_is_counted_without_tokens(meter):
    meter(called(outcome="failed", first_token=None, cost=None))
    of = {"asker": "actor", "model": "fake"}
    assert value(meter, "model_calls_total", **of, outcome="failed") == 1
    assert value(meter, "model_tokens_total", **of, direction="input") is None


def test_steps_are_timed(meter):
    meter(Stepped("done", 1.5))
    assert value(meter, "step_duration_seconds_sum", outcome="done") == 1.5


async def test_sockets_are_counted_while_they_are_open(meter):
    opened, end = asyncio.Event(), asyncio.Event()

    async def page(scope, receive, send):
        opened.set()
        await end.wait()

    scope = {"path": "/ws/chat/0190b1de-0000-7000-8000-000000000000/"}
    socket = asyncio.create_task(meter.counting(page)(scope, None, None))
    await opened.wait()
    assert value(meter, "open_sockets", page="chat") == 1
    end.set()
    await socket
    assert value(meter, "open_sockets", page="chat") == 0


async def test_a_socket_that_fails_is_not_open_any_more(meter):
    async def page(scope, receive, send):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await meter.counting(page)({"path": "/ws/studio/"}, None, None)
    assert value(meter, "open_sockets", page="studio") == 0


def test_every_name_follows_the_conventions(meter):
    for fact in (Closed("turn", "", "done", 1.0), Closed("cycle", "buffer", "done", 1.0), called()):
        meter(fact)
    text = generate_latest(meter.registry).decode()
    families = {f.name: f for f in text_string_to_metric_families(text) if "omsite" in f.name}
    assert families
    for name, family in families.items():
        assert family.documentation.endswith("."), name
        assert family.type in ("counter", "gauge", "histogram"), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name


def test_every_figure_is_in_the_documentation(meter):
    text = (Path(__file__).parents[3] / "docs" / "observability.md").read_text()
    listed = set(re.findall(r"^\| `(omsite_\w+)`", text, re.MULTILINE))
    own = {name for name in meter.registry._names_to_collectors if name.startswith("omsite_")}
    shown = {name for name in own if not re.search(r"_(bucket|count|sum|created)$", name)}
    counted = {name.removesuffix("_total") for name in listed if name.endswith("_total")}
    of_rows = {"omsite_turns_open", "omsite_cycles_open", "omsite_queue_age_seconds"}
    of_broker = {f"omsite_broker_{name}" for name in ("messages", "age_seconds", "up")}
    assert listed == (shown - counted) | of_rows | {"omsite_database_up"} | of_broker
