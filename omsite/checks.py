"""Find settings that do not go together, before anybody loses data to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from .config import Config


def environment(app_configs: object = None, **kwargs: Any) -> list[CheckMessage]:
    """Return what is wrong with the environment; E003, no secret, is raised by the settings."""
    return list(problems(settings.CONFIG))


def problems(config: Config) -> Iterator[CheckMessage]:
    """Yield what does not go together in a configuration."""
    if config.database_url.startswith("sqlite") and not config.embedded:
        yield Error(
            "Processes cannot share a SQLite file: DATABASE_URL names one, REDIS_URL is set.",
            hint="Set DATABASE_URL=postgresql://USER@HOST/NAME, or unset REDIS_URL.",
            id="omsite.E001",
        )
    if config.om_dispatcher == "celery" and config.embedded:
        yield Error(
            "OM_DISPATCHER=celery needs a broker, and REDIS_URL is not set.",
            hint="Set REDIS_URL=redis://HOST:6379/0, or unset OM_DISPATCHER.",
            id="omsite.E002",
        )
    if config.debug and not config.embedded:
        yield Error(
            "DEBUG shows tracebacks to everybody, and REDIS_URL says that this is a server.",
            hint="Unset DEBUG.",
            id="omsite.E004",
        )
    if "*" in config.allowed_hosts and not config.embedded:
        yield Warning(
            "ALLOWED_HOSTS admits every name, so that links can be made for a foreign one.",
            hint="Name the hosts, like ALLOWED_HOSTS=om.example.org.",
            id="omsite.W005",
        )
    if config.om_behind_proxy and config.embedded:
        yield Warning(
            "OM_BEHIND_PROXY is set in the embedded mode, which signs demo users in from loopback.",
            hint="Set REDIS_URL for a server behind a proxy, or unset OM_BEHIND_PROXY.",
            id="omsite.W006",
        )
