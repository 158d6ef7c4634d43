"""Tell Django about the app."""

from django.apps import AppConfig


class OmsiteConfig(AppConfig):
    """Configure the app."""

    name = "omsite"
