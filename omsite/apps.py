"""Tell Django about the app."""

from django.apps import AppConfig
from django.core import checks


class OmsiteConfig(AppConfig):
    """Configure the app."""

    name = "omsite"

    def ready(self) -> None:
        from .checks import environment

        checks.register(environment)
