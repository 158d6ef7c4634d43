import logging
import time

import pytest
from celery.signals import before_task_publish, setup_logging, worker_init, worker_process_init
from django.conf import settings

from omsite import celery
from omsite.logs import About, WithoutSecrets


def receivers(signal):
    return [receiver for _, receiver in signal.receivers]


def test_workers_write_logs_through_our_filters():
    """Celery leaves logging alone as soon as somebody listens to this signal."""
    assert celery._log in receivers(setup_logging)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        celery._log()
        added = [handler for handler in root.handlers if handler not in before[0]]
        kinds = {type(each) for handler in added for each in handler.filters}
        assert kinds == {About, WithoutSecrets}
    finally:
        root.handlers[:], root.level = before


def test_every_worker_process_is_watched():
    assert celery._watch in receivers(worker_init)
    assert celery._watch in receivers(worker_process_init)


def test_every_message_says_when_it_was_sent():
    assert celery._date in receivers(before_task_publish)
    headers = {}
    celery._date(headers=headers)
    assert headers["sent_at"] == pytest.approx(time.time(), abs=5)


def test_untraced_messages_carry_nothing_of_ours():
    headers = {}
    celery._send_cause(headers=headers)
    assert headers == {}


def test_what_beat_sends_is_known_to_workers():
    celery.app.loader.import_default_modules()
    sent = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert sent == {"memory.tasks.sweep", "agents.tasks.expire"}
    assert sent <= set(celery.app.tasks)
