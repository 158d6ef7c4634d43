"""Tell Django about the app."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Configure the app."""

    name = "agents"
