"""Run cycles in Celery workers: celery -A omsite worker."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")

app = Celery("omsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
