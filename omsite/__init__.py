"""Compose the site: the only place that knows which backends are in use."""

from .celery import app as celery_app

__all__ = ["celery_app"]
