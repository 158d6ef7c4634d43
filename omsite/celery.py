"""Run cycles in Celery workers: celery -A omsite worker --queues observe,reflect --pool threads."""

import os
import time
from logging.config import dictConfig
from typing import Any

from celery import Celery
from celery.signals import (
    before_task_publish,
    setup_logging,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_ready,
)
from django.conf import settings

from omsite.processes import SENT_AT
from omsite.thrift import be_thrifty

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

app = Celery("omsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def _begin(**_: Any) -> None:
    """Let what a worker finds due wake workers too; a forked process gets a loop of its own."""
    from memory import tasks

    tasks.begin()


def _spare(**_: Any) -> None:
    """Take no more memory than what is held needs."""
    be_thrifty()


def _watch(**_: Any) -> None:
    """Measure and trace what a worker does, as far as that is asked for."""
    from omsite import watch

    watch.watch_worker(settings.CONFIG)


def _log(**_: Any) -> None:
    """Write logs as the other processes do: Celery's own handlers know no ids and no secrets."""
    dictConfig(settings.LOGGING)


def _date(headers: dict[str, Any], **_: Any) -> None:
    """Say when a message was sent: a broker does not, and how long it waits is measured."""
    headers[SENT_AT] = time.time()


def _send_cause(headers: dict[str, Any], **_: Any) -> None:
    """Tell the worker what made its work due, for its traces."""
    if settings.CONFIG.om_traces:
        from omsite.tracing import send_cause

        send_cause(headers)


def _take_cause(task: Any, **_: Any) -> None:
    if settings.CONFIG.om_traces:
        from omsite.tracing import take_cause

        take_cause(task.request.headers)


setup_logging.connect(_log, weak=False)
worker_ready.connect(_spare, weak=False)
before_task_publish.connect(_date, weak=False)
before_task_publish.connect(_send_cause, weak=False)
task_prerun.connect(_take_cause, weak=False)
for _signal in (worker_init, worker_process_init):
    _signal.connect(_begin, weak=False)
    _signal.connect(_watch, weak=False)
