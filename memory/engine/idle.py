"""Read how long a pause must be before memory is activated early."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, TypeAlias

AUTO: Literal["auto"] = "auto"
OTHERS = "default"
DURATION_RULE = 'must be seconds, a duration like "5m" or "1.5h", "auto", or false'

Pause: TypeAlias = float | Literal["auto", False]
Idle: TypeAlias = Pause | dict[str, Pause]

_MINUTE, _HOUR = 60.0, 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": _MINUTE, "h": _HOUR}
_DURATION = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|\.\d+)\s*"
    r"(?:(?P<ms>ms|msecs?|milliseconds?)|(?P<s>s|secs?|seconds?)"
    r"|(?P<m>m|mins?|minutes?)|(?P<h>h|hrs?|hours?))",
    re.IGNORECASE,
)
_SHORT_CACHE_OF_OPENAI = re.compile(r"gpt-4.*|gpt-5(-.*)?|gpt-5\.[1-4](-.*)?")
_RETENTION = {"24h": _HOUR, "in_memory": 5 * _MINUTE, "in-memory": 5 * _MINUTE}
_CACHES = (("google", 24 * _HOUR), ("gemini", 24 * _HOUR), ("deepseek", _HOUR), ("groq", 2 * _HOUR))
_SHORTEST_CACHE = 5 * _MINUTE


def read_idle(value: object) -> Idle:
    """Return a pause in seconds, "auto" or False; or such a value for each provider.

    Takes seconds, texts like "5m", "1hr", "90 s", "1.5h", "auto", false, and an object of
    provider names with these, "default" standing for all others. Raises ValueError.
    """
    if not isinstance(value, Mapping):
        return read_pause(value)
    if not value:
        raise ValueError(f"must name a provider or {OTHERS}")
    return {_provider_key(key): _of_provider(key, pause) for key, pause in value.items()}


def read_pause(value: object) -> Pause:
    """Return seconds, "auto" or False. Raises ValueError."""
    if value is False:
        return False
    if isinstance(value, str):
        return AUTO if value.strip().lower() == AUTO else _seconds_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(DURATION_RULE)
    if not isfinite(value) or value < 0:
        raise ValueError(f"{DURATION_RULE}; a number must be finite and not negative")
    return float(value)


def pause_of(idle: Idle, model: str, settings: Mapping[str, Any]) -> float | None:
    """Return the seconds after which a model's thread counts as idle; None: never.

    Of a value for each provider, the one that is named exactly like the model's provider
    counts (``openai`` is not ``openai-responses``), else the default, else none.
    """
    pause = _of(idle, model) if isinstance(idle, dict) else idle
    if pause is False:
        return None
    return cache_lifetime(model, settings) if pause == AUTO else pause


def cache_lifetime(model: str, settings: Mapping[str, Any]) -> float:
    """Return for how many seconds a provider keeps the prompt of a model or provider cached.

    ``settings`` are the model settings in force: OpenAI's retention counts, if it is set.
    """
    provider, _, name = model.lower().partition(":")
    if "openai" in provider and provider != "openai-compatible":
        return _openai(name, settings)
    for known, seconds in _CACHES:
        if known in provider:
            return seconds
    return _SHORTEST_CACHE


def _openai(name: str, settings: Mapping[str, Any]) -> float:
    chosen = _RETENTION.get(str(settings.get("openai_prompt_cache_retention")))
    if chosen is not None:
        return chosen
    return _SHORTEST_CACHE if _SHORT_CACHE_OF_OPENAI.fullmatch(name) else _HOUR


def _of(by_provider: Mapping[str, Pause], model: str) -> Pause:
    provider = model.lower().partition(":")[0]
    return by_provider.get(provider, by_provider.get(OTHERS, False))


def _seconds_of(text: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(DURATION_RULE)
    unit = next(unit for unit in _UNITS if match[unit])
    return float(match["number"]) * _UNITS[unit]


def _provider_key(key: object) -> str:
    if not isinstance(key, str) or not key.strip():
        raise ValueError("must have the names of providers as keys")
    return key.strip().lower()


def _of_provider(key: object, pause: object) -> Pause:
    try:
        return read_pause(pause)
    except ValueError as error:
        raise ValueError(f"{key} = {pause!r}: {error}") from None
