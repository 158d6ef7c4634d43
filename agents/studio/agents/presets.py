"""Name sets of memory options to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Hold options that go well together."""

    key: str
    name: str
    about: str
    options: Mapping[str, Any]


PRESETS = (
    Preset(
        "standard",
        "Standard",
        "Observes at 30k tokens of messages and condenses at 40k of observations.",
        {},
    ),
    Preset(
        "small",
        "Small models",
        "Observes at 8k tokens, with short instructions, for models with small windows.",
        {"message_tokens": 8_000, "observation_tokens": 10_000, "observer_prompt": "condensed"},
    ),
    Preset(
        "long",
        "Long conversations",
        "Keeps 100k tokens of messages whole before it observes, and 60k of observations.",
        {"message_tokens": 100_000, "observation_tokens": 60_000},
    ),
    Preset(
        "thrifty",
        "Few calls",
        "Observes ahead half as often, and shows what waits once no prompt is cached anyway.",
        {"buffer_tokens": 0.5, "activate_after_idle": "auto"},
    ),
    Preset(
        "demo",
        "Quick demo",
        "Observes at 1.2k tokens, so that memory forms within a dozen messages.",
        {"message_tokens": 1_200, "observation_tokens": 2_400},
    ),
)
_NAMED = {name for preset in PRESETS for name in preset.options}


def preset_of(options: Mapping[str, Any]) -> Preset | None:
    """Return the preset that options are as, whatever else they set; None for one's own."""
    own = {name: value for name, value in options.items() if name in _NAMED}
    return next((preset for preset in PRESETS if dict(preset.options) == own), None)


def applied(key: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with a preset in place of another; as they are when it is not one."""
    preset = next((each for each in PRESETS if each.key == key), None)
    if preset is None:
        return dict(options)
    kept = {name: value for name, value in options.items() if name not in _NAMED}
    return {**kept, **preset.options}
