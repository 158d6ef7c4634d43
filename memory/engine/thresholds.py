"""Resolve ratios and absolutes once into plain token counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

ABSOLUTE_RETENTION = 1000
LARGEST = 10**12
"""More tokens than any model reads: beyond it arithmetic would lose its exactness."""

ABSOLUTE_CEILING = 100


class ThresholdError(ValueError):
    """Tell which option is wrong, its value and the rule it breaks."""

    def __init__(self, field: str, value: float, rule: str) -> None:
        whole = isinstance(value, float) and value.is_integer()
        super().__init__(f"{field} = {int(value) if whole else value!r}: {rule}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Shared:
    """Hold how floor and ceiling follow a threshold that moves; None: they keep their distance.

    ``kept`` is the share of the threshold to keep (None: the floor stays), ``factor`` the
    ceiling's multiple of it (None: the ceiling stays as far above it as it is).
    """

    kept: float | None
    factor: float | None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hold the token counts at which something is due.

    Messages: observed from ``observe`` on, ahead of time every ``buffer`` (None: never),
    down to ``floor``, the turn waiting from ``ceiling`` on. Observations: condensed from
    ``reflect`` on, ahead of time from ``buffer_reflection`` (None: never), at once from
    ``reflect_ceiling``. With ``shared``, messages may take what observations leave of their
    budget; these counts are then of a memory that is full: see ``given``.
    """

    observe: int
    buffer: int | None
    floor: int
    ceiling: int
    reflect: int
    buffer_reflection: int | None
    reflect_ceiling: int
    shared: Shared | None = None

    def given(self, observation_tokens: int) -> Thresholds:
        """Return the thresholds that hold beside so many tokens of observations."""
        if self.shared is None:
            return self
        observe = self.observe + max(0, self.reflect - observation_tokens)
        kept, factor = self.shared.kept, self.shared.factor
        return replace(
            self,
            observe=observe,
            floor=self.floor if kept is None else _kept(kept, observe),
            ceiling=self.ceiling + observe - self.observe
            if factor is None
            else round(factor * observe),
            shared=None,
        )

    def buffer_interval(self, pending: int) -> int | None:
        """Return after how many new tokens to buffer: half as many close to the threshold."""
        if self.buffer is None:
            return None
        ramp = self.observe - 1.1 * self.buffer
        return self.buffer // 2 if ramp <= pending < self.observe else self.buffer


def resolve(
    *,
    message_tokens: int = 30_000,
    buffer_tokens: float | None = 0.2,
    buffer_activation: float = 0.8,
    block_after: float = 1.2,
    observation_tokens: int = 40_000,
    reflection_buffer_activation: float = 0.5,
    reflection_block_after: float = 1.2,
    share_token_budget: bool = False,
) -> Thresholds:
    """Return the thresholds meant by options given as ratios or absolute tokens.

    ``buffer_tokens`` below 1 is a share of ``message_tokens``, None turns buffering off;
    ``buffer_activation`` up to 1 is the share to take away, from 1000 on the tokens to keep;
    ``block_after`` below 100 is a factor. Raises ThresholdError.
    """
    _positive("message_tokens", message_tokens)
    _positive("observation_tokens", observation_tokens)
    found = Thresholds(
        observe=message_tokens,
        buffer=None,
        floor=_floor(buffer_activation, message_tokens),
        ceiling=message_tokens,
        reflect=observation_tokens,
        buffer_reflection=None,
        reflect_ceiling=observation_tokens,
        shared=_shared(buffer_activation, block_after if buffer_tokens is not None else 1)
        if share_token_budget
        else None,
    )
    if buffer_tokens is None:
        return found
    return replace(
        found,
        buffer=_buffer(buffer_tokens, message_tokens),
        ceiling=_ceiling("block_after", block_after, "message_tokens", message_tokens),
        buffer_reflection=_buffer_reflection(reflection_buffer_activation, observation_tokens),
        reflect_ceiling=_ceiling(
            "reflection_block_after",
            reflection_block_after,
            "observation_tokens",
            observation_tokens,
        ),
    )


def _shared(buffer_activation: float, block_after: float) -> Shared:
    return Shared(
        kept=1 - buffer_activation if buffer_activation <= 1 else None,
        factor=block_after if block_after < ABSOLUTE_CEILING else None,
    )


def _kept(share: float, threshold: int) -> int:
    return min(round(threshold * share), threshold - 1)


def _positive(field: str, value: float) -> None:
    if not (isfinite(value) and value > 0):
        raise ThresholdError(field, value, "must be more than 0")
    if value > LARGEST:
        raise ThresholdError(field, value, f"must be at most {LARGEST:,}")


def _buffer(value: float, message_tokens: int) -> int:
    _positive("buffer_tokens", value)
    tokens = max(1, round(message_tokens * value if value < 1 else value))
    if tokens >= message_tokens:
        raise ThresholdError("buffer_tokens", value, _less_than_threshold(message_tokens))
    return tokens


def _floor(value: float, message_tokens: int) -> int:
    _positive("buffer_activation", value)
    if value <= 1:
        return _kept(1 - value, message_tokens)
    if value < ABSOLUTE_RETENTION:
        raise ThresholdError(
            "buffer_activation", value, "must be a share up to 1, or at least 1000 tokens to keep"
        )
    if value >= message_tokens:
        raise ThresholdError("buffer_activation", value, _less_than_threshold(message_tokens))
    return min(round(value), message_tokens - 1)


def _less_than_threshold(message_tokens: int) -> str:
    return f"must be less than {message_tokens}, the message_tokens"


def _ceiling(field: str, value: float, of: str, threshold: int) -> int:
    _positive(field, value)
    tokens = round(value * threshold) if 1 <= value < ABSOLUTE_CEILING else round(value)
    if tokens < threshold:
        raise ThresholdError(
            field, value, f"must be a factor from 1 on, or at least {threshold}, the {of}"
        )
    return tokens


def _buffer_reflection(value: float, observation_tokens: int) -> int:
    if not 0 < value <= 1:
        raise ThresholdError(
            "reflection_buffer_activation", value, "must be a share, more than 0 and up to 1"
        )
    return round(observation_tokens * value)
