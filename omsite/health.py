"""Tell a proxy or an orchestrator whether this process lives, and whether it can serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

SECONDS = 3.0


class NotReady(Exception):
    """Say what a request would wait for in vain."""


def database() -> None:
    """Raise unless the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def migrations() -> None:
    """Raise NotReady while a migration is missing."""
    executor = MigrationExecutor(connection)
    if missing := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady(f"{len(missing)} migrations are missing: run manage.py migrate")


def events() -> None:
    """Raise unless events can be sent to other processes."""
    layer = get_channel_layer()
    if layer is None:
        raise NotReady("no channel layer is configured")
    async_to_sync(_send)(layer)


async def _send(layer: object) -> None:
    async with asyncio.timeout(SECONDS):
        await layer.group_send("ready", {"type": "ready"})  # type: ignore[attr-defined]


CHECKS: Mapping[str, Callable[[], None]] = {
    "database": database,
    "migrations": migrations,
    "events": events,
}


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while this process answers at all; nothing else is asked."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest, checks: Mapping[str, Callable[[], None]] = CHECKS) -> HttpResponse:
    """Answer 200 when requests can be served, else 503, and by name what is missing."""
    found = {name: _outcome(check) for name, check in checks.items()}
    fine = set(found.values()) == {"ok"}
    return JsonResponse(found, status=200 if fine else 503)


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except NotReady as reason:
        return str(reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told by its kind alone
        return f"away ({type(error).__name__})"
    return "ok"
