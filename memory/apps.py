"""Tell Django about the app."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    """Configure the app."""

    name = "memory"
