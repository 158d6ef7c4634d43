"""Begin to measure and to trace what a process does, as far as its settings ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory import telemetry

from .processes import QUEUES

if TYPE_CHECKING:
    from .config import Config
    from .metrics.meter import Meter

_meter: Meter | None = None


def meter() -> Meter | None:
    """Return what this process measures with; None while it does not."""
    return _meter


def watch_web(config: Config) -> Meter | None:
    """Watch a process that answers requests; return what it measures with, if it does.

    Its figures include what waits in rows, and in the broker where there is one.
    """
    made = _watch(config)
    if made is not None:
        from .metrics.rows import Rows

        made.registry.register(Rows())
        if config.om_dispatcher == "celery" and not config.embedded:
            from .metrics.broker import Broker, broker_at

            made.registry.register(Broker(broker_at(config.redis_url), QUEUES))
    return made


def watch_worker(config: Config) -> None:
    """Watch a worker, which shows its figures on a port of its own."""
    made = _watch(config)
    if made is not None and config.om_metrics_port:
        from .metrics.serve import serve

        serve(made.registry, config.om_metrics_port, config.om_metrics_token)


def _watch(config: Config) -> Meter | None:
    if config.om_traces:
        from .tracing import exporting, trace_to

        trace_to(exporting(), content=config.om_traces_content)
    if not config.om_metrics:
        return None
    from .metrics.meter import Meter

    made = Meter()
    use(made)
    return made


def use(made: Meter | None) -> Meter | None:
    """Measure with a meter from now on; return the one it replaces."""
    global _meter
    previous, _meter = _meter, made
    telemetry.measure_with(made)
    return previous
