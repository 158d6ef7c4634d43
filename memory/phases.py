"""Say which models a phase may use, in which order, and with which settings."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from django.conf import settings
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from .config import MemoryOptions, Phase
from .tiers import TierExceeded, choose

TEMPERATURES: dict[Phase, float] = {"observer": 0.3, "reflector": 0.0}

# Whose models take a temperature, unless a model's profile says that it does not.
_TAKING = frozenset(
    {
        *("openai", "anthropic", "google", "google-gla", "google-vertex", "google-cloud"),
        *("groq", "mistral", "cohere", "deepseek", "xai", "together", "fireworks"),
    }
)


def chain(
    options: MemoryOptions, phase: Phase, actor_model: str = "", *, tokens: int
) -> tuple[str, ...]:
    """Return the names of the models to try for a phase, best first, each once.

    The phase's own comes first, then the other phase's, the server's for the phase, and the
    Actor's. ``tokens`` are what there is to read, by which a table of tiers chooses. Raises
    TierExceeded when that is more than the phase's own table allows.
    """
    own, other = options.observer_model, options.reflector_model
    if phase == "reflector":
        own, other = other, own
    names = [choose(own, tokens)]
    with suppress(TierExceeded):  # The other's table was not made for this phase.
        names.append(choose(other, tokens))
    names += [settings.MEMORY_MODELS.get(phase, ""), actor_model]
    return tuple(dict.fromkeys(name for name in names if name))


def model_settings(options: MemoryOptions, phase: Phase, model: Model) -> ModelSettings:
    """Return all settings configured for a phase, with its temperature where that is known to fit.

    Settings of another provider than the model's are left in: pydantic-ai reads only its own.
    """
    given = options.observer_settings if phase == "observer" else options.reflector_settings
    found = dict(given)
    if "temperature" not in found and takes_temperature(model) and not _reasons(found):
        found["temperature"] = TEMPERATURES[phase]
    return cast("ModelSettings", found)


def takes_temperature(model: Model) -> bool:
    """Tell whether a model is known to take a temperature, without asking its provider."""
    profile = model.profile
    return (
        model.system in _TAKING
        and "temperature" not in model.unsupported_settings
        and not profile.get("thinking_always_enabled", False)
        and not profile.get("thinking_enabled_by_default", False)
        and not profile.get("anthropic_disallows_sampling_settings", False)
    )


def _reasons(found: dict[str, object]) -> bool:
    """Tell whether settings turn reasoning on, with which providers refuse a temperature."""
    return any(name.endswith("thinking") or "reasoning" in name for name in found)
