"""Choose a model by how much it has to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

UP_TO = "up_to"
OFFLINE = "offline"
#: The offline model doing something wrong, for trials: it fails, says nothing, or is slow.
OFFLINE_MODES = ("fails", "empty", "slow")
COMPATIBLE = "openai-compatible"

_GATEWAY = "gateway/"
_INTERFACE = re.compile(r"-(chat|responses|decisions)$")
_PROVIDER = re.compile(r"[a-z][a-z0-9_]*")


class TierExceeded(ValueError):
    """Tell that there is more to read than the largest tier allows."""


@dataclass(frozen=True, slots=True)
class TokenTiers:
    """Hold models by the most tokens each may read, smallest first; bounds are inclusive."""

    tiers: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Read ``{"up_to": {"10000": "openai:gpt-5-mini", …}}``. Raises ValueError."""
        table = spec.get(UP_TO)
        if set(spec) != {UP_TO} or not isinstance(table, Mapping):
            raise ValueError(f'must be a model\'s name or {{"{UP_TO}": {{"TOKENS": "MODEL", …}}}}')
        if not table:
            raise ValueError(f"{UP_TO} must have at least one number of tokens with its model")
        tiers = sorted((_limit(key), _model(key, name)) for key, name in table.items())
        limits = [limit for limit, _ in tiers]
        if len(set(limits)) < len(limits):
            raise ValueError(f"{UP_TO} must have each number of tokens once")
        return cls(tuple(tiers))

    @property
    def top(self) -> int:
        """Return the most tokens any of the models may read."""
        return self.tiers[-1][0]

    def choose(self, tokens: int) -> str:
        """Return the model of the smallest tier that holds ``tokens``. Raises TierExceeded."""
        for limit, model in self.tiers:
            if tokens <= limit:
                return model
        raise TierExceeded(
            f"{tokens} tokens are more than the largest tier of {UP_TO} allows ({self.top}): "
            "add a tier for a model that can read more."
        )


def choose(spec: str | Mapping[str, Any], tokens: int) -> str:
    """Return the model that a name or a table of tiers means for ``tokens`` to read.

    Raises TierExceeded above the largest tier, ValueError for a table that is none.
    """
    return spec if isinstance(spec, str) else TokenTiers.of(spec).choose(tokens)


def offline_mode(name: str) -> str | None:
    """Return how a name wants the offline model, empty for as usual; None for another model."""
    provider, colon, mode = name.partition(":")
    if provider != OFFLINE:
        return None
    return mode if mode in OFFLINE_MODES or not colon else None


def check_name(name: str) -> None:
    """Raise ValueError for a model's name that no provider can be meant by.

    Whether its package and key are at hand is known when it is used.
    """
    if offline_mode(name) is not None:
        return
    provider, _, model = name.partition(":")
    if not provider or not model.strip():
        raise ValueError(
            f"{name!r} is not a model's name: write PROVIDER:MODEL, like openai:gpt-5-mini, "
            f"or {OFFLINE}"
        )
    if not _is_known(provider):
        raise ValueError(f"{name!r}: there is no provider {provider!r}; check the part before “:”")


def _is_known(provider: str) -> bool:
    """Tell whether pydantic-ai has a module for a provider, which need not be importable."""
    if provider.startswith(_GATEWAY):
        provider = provider.removeprefix(_GATEWAY)
    base = _INTERFACE.sub("", provider).replace("-", "_")
    return (
        bool(_PROVIDER.fullmatch(base)) and find_spec(f"pydantic_ai.providers.{base}") is not None
    )


def _limit(key: object) -> int:
    text = str(key).strip()
    if isinstance(key, bool) or not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{UP_TO}.{key}: must be a whole number of tokens, more than 0")
    return int(text)


def _model(key: object, name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{UP_TO}.{key} = {name!r}: must be a model's name")
    try:
        check_name(name)
    except ValueError as error:
        raise ValueError(f"{UP_TO}.{key} = {error}") from None
    return name
