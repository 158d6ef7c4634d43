"""Read from the broker how many wake-ups no worker has taken yet, and since when."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis import Redis
from redis.exceptions import RedisError

from omsite.processes import SENT_AT

logger = logging.getLogger(__name__)

#: A scraper must not wait for a broker that hangs.
SECONDS = 1.0


class Lists(Protocol):
    """Read lists as Redis does: a message is put in on the left and taken out on the right."""

    def llen(self, name: str) -> Any: ...
    def lindex(self, name: str, index: int) -> Any: ...


def broker_at(url: str) -> Lists:
    """Return the broker at an address; nothing is asked yet."""
    return Redis.from_url(url, socket_connect_timeout=SECONDS, socket_timeout=SECONDS)


class Broker(Collector):
    """Count what waits in each queue, and say how long the oldest has waited."""

    def __init__(
        self, broker: Lists, queues: Sequence[str], now: Callable[[], float] = time.time
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._now = now

    def describe(self) -> Sequence[Metric]:
        """Return nothing: a registry need not ask the broker when it is made."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; while the broker is away, only that it is."""
        up = GaugeMetricFamily("omsite_broker_up", "Whether the broker answered.")
        try:
            found = self._read()
            up.add_metric([], 1)
        except RedisError as error:
            logger.warning("What waits in the broker was not measured: %s", type(error).__name__)
            found = []
            up.add_metric([], 0)
        yield up
        yield from found

    def _read(self) -> Sequence[Metric]:
        counts = GaugeMetricFamily(
            "omsite_broker_messages", "Wake-ups that no worker has taken.", labels=["queue"]
        )
        ages = GaugeMetricFamily(
            "omsite_broker_age_seconds", "How long the oldest of them has waited.", labels=["queue"]
        )
        for queue in self._queues:
            counts.add_metric([queue], self._broker.llen(queue))
            ages.add_metric([queue], self._age(self._broker.lindex(queue, -1)))
        return [counts, ages]

    def _age(self, oldest: bytes | None) -> float:
        """Return how long a message has waited; 0 without one, or one that does not say."""
        if oldest is None:
            return 0.0
        sent_at = json.loads(oldest).get("headers", {}).get(SENT_AT)
        return 0.0 if sent_at is None else max(0.0, self._now() - float(sent_at))
