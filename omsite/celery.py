"""Run cycles in Celery workers: celery -A omsite worker --queues observe,reflect --pool threads."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

app = Celery("omsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def _begin(**_: Any) -> None:
    """Let what a worker finds due wake workers too; a forked process gets a loop of its own."""
    from memory import tasks

    tasks.begin()


for _signal in (worker_init, worker_process_init):
    _signal.connect(_begin, weak=False)
