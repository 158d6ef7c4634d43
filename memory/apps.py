"""Tell Django about the app."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    """Configure the app."""

    name = "memory"

    def ready(self) -> None:
        """Register the checks that run when the server starts."""
        from . import checks  # noqa: F401
