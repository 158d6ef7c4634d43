import json
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from prometheus_client import CollectorRegistry

from omsite.celery import app
from omsite.metrics.broker import Broker, broker_at

NOW = 1_000.0


class Lists:
    """Hold lists as Redis does: what was put in first is on the right."""

    def __init__(self, **lists):
        self.lists = lists

    def llen(self, name):
        return len(self.lists.get(name, ()))

    def lindex(self, name, index):
        found = self.lists.get(name)
        return found[index] if found else None


class Away:
    def llen(self, name):
        raise redis.ConnectionError("Connection refused to redis://:secret@broker")


def message(**headers):
    return json.dumps({"body": "", "headers": headers, "properties": {}}).encode()


def reading(lists, *queues):
    registry = CollectorRegistry()
    registry.register(Broker(lists, queues or ("observe", "reflect"), now=lambda: NOW))
    return lambda name, **labels: registry.get_sample_value(f"omsite_broker_{name}", labels)


def test_queues_in_which_nothing_waits_are_empty_and_of_no_age():
    read = reading(Lists())
    for queue in ("observe", "reflect"):
        assert read("messages", queue=queue) == 0
        assert read("age_seconds", queue=queue) == 0
    assert read("up") == 1


def test_the_oldest_wake_up_is_the_age_of_its_queue():
    lists = Lists(observe=[message(sent_at=NOW - 1), message(sent_at=NOW - 90)])
    read = reading(lists)
    assert read("messages", queue="observe") == 2
    assert read("age_seconds", queue="observe") == 90
    assert read("age_seconds", queue="reflect") == 0


def test_a_wake_up_that_does_not_say_when_it_was_sent_counts_and_has_no_age():
    read = reading(Lists(observe=[message(task="memory.tasks.sweep")]))
    assert read("messages", queue="observe") == 1
    assert read("age_seconds", queue="observe") == 0


def test_clocks_that_disagree_make_no_age_below_nothing():
    assert reading(Lists(observe=[message(sent_at=NOW + 5)]))("age_seconds", queue="observe") == 0


def test_while_the_broker_is_away_only_that_is_shown(caplog):
    read = reading(Away())
    assert read("up") == 0
    assert read("messages", queue="observe") is None
    assert "secret" not in caplog.text


@pytest.mark.skipif(settings.EMBEDDED, reason="REDIS_URL is not set")
def test_what_celery_leaves_in_redis_is_what_is_read():
    queue, broker = f"test-{uuid4()}", broker_at(settings.CELERY_BROKER_URL)
    try:
        for _ in range(2):
            app.send_task("memory.tasks.sweep", queue=queue)
        registry = CollectorRegistry()
        registry.register(Broker(broker, [queue]))
        found = {"queue": queue}
        assert registry.get_sample_value("omsite_broker_messages", found) == 2
        age = registry.get_sample_value("omsite_broker_age_seconds", found)
        assert 0 < age < 60
    finally:
        broker.delete(*broker.scan_iter(f"*{queue}*"))
