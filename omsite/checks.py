"""Find settings that do not go together, before anybody loses data to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from .config import Config

SHORTEST_TOKEN = 16
SHORTEST_AUDIT = 30


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
    yield from _problems_of_watching(config)
    yield from _problems_of_keeping(config)
    if config.om_behind_proxy and config.embedded:
        yield Warning(
            "OM_BEHIND_PROXY is set in the embedded mode, which signs demo users in from loopback.",
            hint="Set REDIS_URL for a server behind a proxy, or unset OM_BEHIND_PROXY.",
            id="omsite.W006",
        )


def _problems_of_watching(config: Config) -> Iterator[CheckMessage]:
    if (config.om_metrics_token or config.om_metrics_port) and not config.om_metrics:
        yield Warning(
            "OM_METRICS_TOKEN or OM_METRICS_PORT is set, but nothing is measured.",
            hint="Set OM_METRICS=true, or unset both.",
            id="omsite.W007",
        )
    if config.om_metrics and not config.om_metrics_token and not config.embedded:
        yield Warning(
            "OM_METRICS is on without OM_METRICS_TOKEN: no scraper is let in, and workers show "
            "their figures to their own machine only.",
            hint="Set OM_METRICS_TOKEN, and give it to the scraper as its bearer token.",
            id="omsite.W008",
        )
    if config.om_metrics and 0 < len(config.om_metrics_token) < SHORTEST_TOKEN:
        yield Error(
            f"OM_METRICS_TOKEN has fewer than {SHORTEST_TOKEN} characters and can be guessed.",
            hint="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            id="omsite.E009",
        )
    if config.om_traces_content and not config.om_traces:
        yield Warning(
            "OM_TRACES_CONTENT is set, but no traces are sent.",
            hint="Set OM_TRACES=true, or unset OM_TRACES_CONTENT.",
            id="omsite.W010",
        )
    named = config.otel_exporter_otlp_endpoint or config.otel_exporter_otlp_traces_endpoint
    if config.om_traces and not named:
        yield Warning(
            "OM_TRACES is on and nothing says where traces go: they are sent to localhost:4318.",
            hint="Set OTEL_EXPORTER_OTLP_ENDPOINT, like http://collector:4318.",
            id="omsite.W011",
        )


def _problems_of_keeping(config: Config) -> Iterator[CheckMessage]:
    if 0 < config.om_keep_conversations_days <= (config.om_keep_temporary_days or 36_500):
        yield Warning(
            "OM_KEEP_TEMPORARY_DAYS has no effect: after OM_KEEP_CONVERSATIONS_DAYS every "
            "conversation is erased, temporary ones too.",
            hint="Set OM_KEEP_TEMPORARY_DAYS to fewer days than OM_KEEP_CONVERSATIONS_DAYS.",
            id="omsite.W020",
        )
    if 0 < config.om_keep_audit_days < SHORTEST_AUDIT:
        yield Warning(
            f"OM_KEEP_AUDIT_DAYS keeps less than {SHORTEST_AUDIT} days: who read another's memory "
            "is forgotten before anybody asks.",
            hint="Set OM_KEEP_AUDIT_DAYS=730, or 0 for ever.",
            id="omsite.W021",
        )
