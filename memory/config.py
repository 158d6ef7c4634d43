"""Describe how one record remembers: defaults, the agent's options, the record's overrides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import ValidationError

from .engine.idle import pause_of
from .options import (
    ContinuationHints,
    Fault,
    MemoryOptions,
    Phase,
    Retrieval,
    faults,
    problems,
)

__all__ = [
    "ContinuationHints",
    "Fault",
    "MemoryOptions",
    "Phase",
    "Retrieval",
    "Setting",
    "Source",
    "effective",
    "explain",
    "faults",
    "idle_seconds",
    "in_force",
    "merged",
    "options_of_agent",
    "problems",
]

logger = logging.getLogger(__name__)

Source = Literal["default", "server", "agent", "record"]


def idle_seconds(
    options: MemoryOptions,
    model: str,
    *,
    phase: Phase = "observer",
    model_settings: Mapping[str, Any] | None = None,
) -> float | None:
    """Return after how many seconds a thread of an Actor's model counts as idle; None: never.

    Each phase has its own option; a reflection does not inherit the observation's.
    ``model_settings`` are the Actor's.
    """
    own = options.activate_after_idle
    idle = own if phase == "observer" else options.reflection_activate_after_idle
    return pause_of(idle, model, model_settings or {})


def merged(of_agent: Mapping[str, Any], overrides: Mapping[str, Any]) -> MemoryOptions:
    """Return the options in force: defaults, the server's, the agent's, the record's on top.

    Raises pydantic.ValidationError.
    """
    return MemoryOptions.model_validate(
        {name: value for name, (value, _) in _given(of_agent, overrides).items()}
    )


class Setting(NamedTuple):
    """Hold the value of an option in force, and who set it."""

    value: Any
    source: Source


def explain(of_agent: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Setting]:
    """Return every option in force with its source. Raises pydantic.ValidationError."""
    given = _given(of_agent, overrides)
    values = merged(of_agent, overrides).model_dump()
    return {
        name: Setting(value, given[name].source if name in given else "default")
        for name, value in values.items()
    }


def _given(of_agent: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Setting]:
    agents = dict(of_agent)
    if overrides.get("buffer_tokens", True) is False and "block_after" not in overrides:
        # Turning buffering off for one record turns off what needs it, too.
        agents.pop("block_after", None)
    layers: tuple[tuple[Source, Mapping[str, Any]], ...] = (
        ("server", getattr(settings, "MEMORY_DEFAULTS", {})),
        ("agent", agents),
        ("record", overrides),
    )
    return {
        name: Setting(value, source) for source, layer in layers for name, value in layer.items()
    }


def effective(agent: str, overrides: Mapping[str, Any]) -> MemoryOptions:
    """Return the options in force for a record of an agent's thread, as ``in_force`` does."""
    return in_force(agent, options_of_agent(agent), overrides)


def in_force(
    agent: str, of_agent: Mapping[str, Any], overrides: Mapping[str, Any]
) -> MemoryOptions:
    """Return the options in force, from an agent's options already read.

    Options that are not valid, as after a change by hand, must not fail anybody's turn: the
    agent's alone, or else the defaults, hold until they are mended.
    """
    for of_record in (overrides, {}) if overrides else ({},):
        try:
            return merged(of_agent, of_record)
        except ValidationError as error:
            said = "; ".join(problems(error))
            logger.error("The memory options of agent %s are not in force: %s", agent, said)
    return MemoryOptions()


def options_of_agent(agent: str) -> Mapping[str, Any]:
    """Return the options an agent was given, as the setting MEMORY_OPTIONS_OF_AGENT finds them."""
    return _options_of_agent()(agent)


@lru_cache
def _options_of_agent() -> Callable[[str], Mapping[str, Any]]:
    found: Callable[[str], Mapping[str, Any]] = import_string(settings.MEMORY_OPTIONS_OF_AGENT)
    return found
