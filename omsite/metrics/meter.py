"""Count and time what this process is told of: turns, steps, cycles, model calls, sockets.

Names are Prometheus': a unit at the end, ``_total`` for what only grows. Labels hold what has few
values; never an id, a person or a text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from memory.telemetry import Called, Closed, Fact, Stepped
from memory.tiers import OFFLINE

#: Seconds: a model answers in some, a turn with tools takes minutes.
SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)

# A series more for every one there is, of when it began: nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class Meter:
    """Keep the figures of one process in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._turns = self._counter("turns", "Turns that ended, by how.", "status")
        self._turn_seconds = self._histogram(
            "turn_duration_seconds", "Time from a turn's start to its end, by how.", "status"
        )
        self._steps = self._histogram(
            "step_duration_seconds", "Time of a step, from its request to its answer.", "outcome"
        )
        self._cycles = self._counter("cycles", "Cycles that ended, by how.", "kind", "status")
        self._cycle_seconds = self._histogram(
            "cycle_duration_seconds", "Time from a cycle's claim to its end.", "kind", "status"
        )
        called = ("asker", "model")
        self._calls = self._counter("model_calls", "Calls of models.", *called, "outcome")
        self._call_seconds = self._histogram(
            "model_call_duration_seconds", "Time a model took to answer.", "asker"
        )
        self._first = self._histogram(
            "first_token_seconds", "Time to the first piece of a streamed answer.", "asker"
        )
        self._tokens = self._counter(
            "model_tokens", "Tokens read and written by models.", *called, "direction"
        )
        self._cost = self._counter("model_cost_dollars", "What calls cost, where known.", *called)
        self._unpriced = self._counter(
            "model_calls_unpriced", "Calls whose cost is not known.", *called
        )
        self._sockets = Gauge(
            "omsite_open_sockets", "Websockets open now.", ["page"], registry=self.registry
        )

    def __call__(self, fact: Fact) -> None:
        """Take a fact, from any thread."""
        match fact:
            case Closed(kind="turn"):
                self._turns.labels(fact.status).inc()
                if fact.seconds is not None:
                    self._turn_seconds.labels(fact.status).observe(fact.seconds)
            case Closed():
                self._cycles.labels(fact.name, fact.status).inc()
                if fact.seconds is not None:
                    self._cycle_seconds.labels(fact.name, fact.status).observe(fact.seconds)
            case Stepped():
                self._steps.labels(fact.outcome).observe(fact.seconds)
            case Called():
                self._called(fact)

    def _called(self, call: Called) -> None:
        self._calls.labels(call.asker, call.model, call.outcome).inc()
        self._call_seconds.labels(call.asker).observe(call.seconds)
        if call.first_token is not None:
            self._first.labels(call.asker).observe(call.first_token)
        if call.outcome != "done":
            return
        self._tokens.labels(call.asker, call.model, "input").inc(call.input_tokens)
        self._tokens.labels(call.asker, call.model, "output").inc(call.output_tokens)
        if call.cost is not None:
            self._cost.labels(call.asker, call.model).inc(float(call.cost))
        elif call.model != OFFLINE:
            self._unpriced.labels(call.asker, call.model).inc()

    def counting(self, application: Application) -> Application:
        """Return a websocket application that counts its open sockets, by page."""

        async def counted(scope: Scope, receive: Any, send: Any) -> None:
            # The first part of the path after "ws": what follows names a thread.
            page = scope["path"].strip("/").split("/")[1:2]
            with self._sockets.labels(*page or [""]).track_inprogress():
                await application(scope, receive, send)

        return counted

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"omsite_{name}", about, labels, registry=self.registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(f"omsite_{name}", about, labels, buckets=SECONDS, registry=self.registry)
