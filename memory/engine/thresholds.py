"""Resolve ratios and absolutes once into plain token counts."""

from __future__ import annotations

from dataclasses import dataclass

ABSOLUTE_RETENTION = 1000
ABSOLUTE_CEILING = 100


class ThresholdError(ValueError):
    """Tell which option is wrong, its value and the rule it breaks."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(f"{field} = {value}: {rule}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hold the token counts at which something is due.

    Messages: observed from ``observe`` on, ahead of time every ``buffer`` (None: never),
    down to ``floor``, the turn waiting from ``ceiling`` on. Observations: condensed from
    ``reflect`` on, ahead of time from ``buffer_reflection`` (None: never), at once from
    ``reflect_ceiling``.
    """

    observe: int
    buffer: int | None
    floor: int
    ceiling: int
    reflect: int
    buffer_reflection: int | None
    reflect_ceiling: int

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
) -> Thresholds:
    """Return the thresholds meant by options given as ratios or absolute tokens.

    ``buffer_tokens`` below 1 is a share of ``message_tokens``, None turns buffering off;
    ``buffer_activation`` up to 1 is the share to take away, from 1000 on the tokens to keep;
    ``block_after`` below 100 is a factor. Raises ThresholdError.
    """
    _positive("message_tokens", message_tokens)
    _positive("observation_tokens", observation_tokens)
    buffering = buffer_tokens is not None
    return Thresholds(
        observe=message_tokens,
        buffer=_buffer(buffer_tokens, message_tokens) if buffer_tokens is not None else None,
        floor=_floor(buffer_activation, message_tokens),
        ceiling=_ceiling("block_after", block_after, message_tokens)
        if buffering
        else message_tokens,
        reflect=observation_tokens,
        buffer_reflection=_buffer_reflection(reflection_buffer_activation, observation_tokens)
        if buffering
        else None,
        reflect_ceiling=_ceiling(
            "reflection_block_after", reflection_block_after, observation_tokens
        )
        if buffering
        else observation_tokens,
    )


def _positive(field: str, value: float) -> None:
    if not value > 0:
        raise ThresholdError(field, value, "must be more than 0")


def _buffer(value: float, message_tokens: int) -> int:
    _positive("buffer_tokens", value)
    tokens = round(message_tokens * value) if value < 1 else round(value)
    if tokens >= message_tokens:
        raise ThresholdError("buffer_tokens", value, f"must be less than {message_tokens}")
    return max(1, tokens)


def _floor(value: float, message_tokens: int) -> int:
    _positive("buffer_activation", value)
    if value <= 1:
        return round(message_tokens * (1 - value))
    if value < ABSOLUTE_RETENTION:
        raise ThresholdError(
            "buffer_activation", value, "must be a share up to 1, or at least 1000 tokens to keep"
        )
    if value >= message_tokens:
        raise ThresholdError("buffer_activation", value, f"must be less than {message_tokens}")
    return round(value)


def _ceiling(field: str, value: float, threshold: int) -> int:
    tokens = round(value * threshold) if 1 <= value < ABSOLUTE_CEILING else round(value)
    if tokens < threshold:
        raise ThresholdError(field, value, f"must be at least {threshold}")
    return tokens


def _buffer_reflection(value: float, observation_tokens: int) -> int:
    if not 0 < value <= 1:
        raise ThresholdError("reflection_buffer_activation", value, "must be a share up to 1")
    return round(observation_tokens * value)
