"""Send traces: turns, steps and cycles of ours, and within them what pydantic-ai makes itself.

Where they go is said by OpenTelemetry's own variables, like OTEL_EXPORTER_OTLP_ENDPOINT.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings

from memory import telemetry

_FORMAT = TraceContextTextMapPropagator()


#: What the exporter reads, and where it sends to when neither is set.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
USUAL = "http://localhost:4318/v1/traces"


def exporting() -> TracerProvider:
    """Return a provider that sends spans in the background, and the last ones at the end."""
    named = Resource.create({"service.name": "omsite"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named)
    # A variable that is set and empty, as containers pass it on, is none; the exporter thinks not.
    place_is_named = any(os.environ.get(name) for name in ENDPOINTS)
    exporter = OTLPSpanExporter() if place_is_named else OTLPSpanExporter(endpoint=USUAL)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def trace_to(provider: TracerProvider | None, *, content: bool = False) -> None:
    """Make spans of everything with a provider from now on; with None, of nothing.

    What people and models say, instructions and the tools' arguments and results are left out
    unless ``content``.
    """
    if provider is None:
        telemetry.trace_with(None)
        Agent.instrument_all(False)
        return
    telemetry.trace_with(provider.get_tracer("omsite"))
    Agent.instrument_all(
        InstrumentationSettings(
            tracer_provider=provider,
            include_content=content,
            include_binary_content=False,
            # They hold instructions in full, and the tools a second time.
            include_model_request_parameters=False,
        )
    )


def send_cause(headers: MutableMapping[str, str]) -> None:
    """Write into a message's headers what sends it, if that is traced."""
    cause = telemetry.cause()
    if cause is not None:
        _FORMAT.inject(headers, set_span_in_context(NonRecordingSpan(cause)))


def take_cause(headers: Mapping[str, str] | None) -> None:
    """Link the work that begins here to what sent the message, if that was traced."""
    sent = get_current_span(_FORMAT.extract(headers or {})).get_span_context()
    telemetry.caused_by(sent if sent.is_valid else None)
