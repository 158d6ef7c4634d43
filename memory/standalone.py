"""Set up Django for a program that wants memory and nothing else of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

DATABASE_URL = "sqlite:///memory.sqlite3"
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}

AGENT = "agent"
"""The model's name that means: the model of the agent whose run it is about."""


class SetUpAlready(Exception):
    """Say that Django is set up already, and what to do then."""


_set_up_with: dict[str, Any] = {}


def setup(
    database_url: str = DATABASE_URL,
    *,
    model: str = "",
    media_root: str = "media",
    options: Mapping[str, Any] | None = None,
) -> None:
    """Configure Django with memory alone, and bring its database up to date.

    ``database_url`` is like ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``. ``model``
    names the model of Observer and Reflector, by default the one of the agent that is run;
    ``options`` are memory options for all threads; attached files are kept in ``media_root``.
    To be called once, before the event loop starts; again with the same words it does nothing.
    Raises SetUpAlready where Django was configured otherwise, and ValueError for a wrong option.
    """
    from django.conf import settings

    words: dict[str, Any] = {"database_url": database_url, "model": model, "media_root": media_root}
    words["options"] = dict(options or {})
    if settings.configured:
        if words == _set_up_with:
            return
        raise SetUpAlready(
            'Django is configured already: add "memory" to its INSTALLED_APPS and the settings '
            "of memory.standalone.defaults() to its own, instead of calling setup."
        )
    if _in_a_loop():
        raise RuntimeError(
            "setup must be called before the event loop starts, or in a thread of its own: "
            "await asyncio.to_thread(setup, …)."
        )
    _check(words["options"])
    _configure(words)
    _set_up_with.update(words)


def defaults(
    model: str = "", *, media_root: str = "media", options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings memory reads, for a Django project that has others of its own.

    ``model`` names the model of Observer and Reflector, by default the one of the agent that
    is run; ``options`` are memory options for all threads.
    """
    return {
        "MEMORY_AGENT_MODEL": "",
        "MEMORY_OPTIONS_OF_AGENT": "memory.standalone.no_options",
        "MEMORY_MODELS": {"observer": model, "reflector": model},
        "MEMORY_DEFAULTS": dict(options or {}),
        "MEMORY_EXTRACTORS": [],
        "MEMORY_HOOKS": [],
        "MEMORY_HOOK_EXECUTION": "background",
        "ACTOR_MODEL": AGENT,
        "MODEL_BASE_URL": "",
        "OFFLINE_DELAY": 0.0,
        "LEASE": timedelta(seconds=20),
        "MEDIA_ROOT": str(Path(media_root).absolute()),
    }


def no_options(agent: str) -> Mapping[str, Any]:
    """Return no options: there is no table of agents."""
    return {}


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _check(options: Mapping[str, Any]) -> None:
    from pydantic import ValidationError

    from memory.options import MemoryOptions, problems

    try:
        MemoryOptions.model_validate(options)
    except ValidationError as error:
        raise ValueError("; ".join(problems(error))) from None


def _configure(words: Mapping[str, Any]) -> None:
    import dj_database_url
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    # Runs come at any time: a connection lives until it breaks.
    database: Any = dj_database_url.parse(words["database_url"], conn_max_age=None)
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = {**SQLITE_OPTIONS}
    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "memory"],
        DATABASES={"default": database},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        TIME_ZONE="UTC",
        **defaults(words["model"], media_root=words["media_root"], options=words["options"]),
    )
    django.setup()
    call_command("migrate", verbosity=0)
    connections.close_all()
    _tell_nobody()


def _tell_nobody() -> None:
    """Send no events: there is no page to see them."""
    from memory.publish import publish_with

    publish_with(lambda event: None)
