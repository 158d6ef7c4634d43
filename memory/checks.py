"""Check the settings of memory when the server starts, before a cycle would stumble over them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from pydantic import ValidationError

from .extraction import registered
from .hooks import EXECUTIONS, loaded
from .options import MemoryOptions, problems


@register
def check_memory(**kwargs: Any) -> list[CheckMessage]:
    """Return what is wrong with the settings that name options, extractors and hooks."""
    said = [*_wrong_defaults(), *_wrong_extractors(), *_wrong_hooks()]
    return [Error(each, id="memory.E001") for each in said]


def _wrong_defaults() -> list[str]:
    try:
        MemoryOptions.model_validate(getattr(settings, "MEMORY_DEFAULTS", {}))
    except ValidationError as error:
        return [f"MEMORY_DEFAULTS: {problem}" for problem in problems(error)]
    return []


def _wrong_extractors() -> list[str]:
    try:
        registered()
    except ValueError as error:
        return [str(error)]
    return []


def _wrong_hooks() -> list[str]:
    execution = getattr(settings, "MEMORY_HOOK_EXECUTION", EXECUTIONS[0])
    if execution not in EXECUTIONS:
        return [f"MEMORY_HOOK_EXECUTION = {execution!r}: must be {' or '.join(EXECUTIONS)}"]
    try:
        loaded(getattr(settings, "MEMORY_HOOKS", ()))
    except ImproperlyConfigured as error:
        return [str(error)]
    return []
