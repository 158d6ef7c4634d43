"""Describe the app."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Hold the labs; its tables are named ``lab_…``."""

    name = "agents.lab"
    label = "lab"
    default_auto_field = "django.db.models.BigAutoField"
